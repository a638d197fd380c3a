// Search runs in a worker, which browsers do not start for pages that lie in a folder. There it runs in a hidden frame.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.started = new Promise(started => addEventListener("DOMContentLoaded", started, {once: true})).then(() => {
        document.body.append(frame);
        const inside = frame.contentWindow, script = frame.contentDocument.createElement("script");
        inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
        script.src = url;
        const loaded = new Promise(done => { script.onload = () => done(inside); });
        frame.contentDocument.body.append(script);
        return loaded;
      });
    }
    postMessage(data) {
      this.started.then(inside => inside.dispatchEvent(new MessageEvent("message", {data})));
    }
  };
