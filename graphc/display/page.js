// Drag a picture, or zoom it by the buttons; a click on a part of it opens the section of that name. Without scripts
// there are no buttons, boxes scroll, and sections open by their titles.
for (const box of document.querySelectorAll(".graphc .picture")) {
  const svg = box.querySelector("svg"), bar = document.createElement("div");
  let scale = 1, from = null;
  const width = svg.viewBox.baseVal.width;
  const zoom = s => { scale = s; svg.style.width = width * s + "px"; };
  // what is still readable is shown as a whole; else the uppermost box is in the middle
  const place = () => {
    const room = (box.clientWidth - 18) / width;
    if (room > 0.6 && room < 1) zoom(room);
    const boxes = [...svg.querySelectorAll("g > title + rect")].map(b => b.getBoundingClientRect());
    const first = boxes.reduce((a, b) => b.y < a.y ? b : a, boxes[0]);
    if (first) box.scrollLeft = first.x - svg.getBoundingClientRect().x + first.width / 2 - box.clientWidth / 2;
  };
  for (const [sign, act] of [["+", () => zoom(scale * 1.25)], ["\u2212", () => zoom(scale / 1.25)],
                             ["1:1", () => zoom(1)], ["fit", () => zoom((box.clientWidth - 18) / width)]]) {
    const button = bar.appendChild(document.createElement("button"));
    button.textContent = sign; button.onclick = act;
  }
  bar.className = "zoom"; box.before(bar); box.style.cursor = "grab";
  place();
  box.closest("details")?.addEventListener("toggle", place, {once: true});
  box.onpointerdown = e => { from = [e.clientX + box.scrollLeft, e.clientY + box.scrollTop]; };
  box.onpointermove = e => { if (from && e.buttons) box.scrollTo(from[0] - e.clientX, from[1] - e.clientY); };
  box.onwheel = e => { if (e.ctrlKey) { e.preventDefault(); zoom(scale * (e.deltaY < 0 ? 1.1 : 1 / 1.1)); } };
}
const groups = new Map([...document.querySelectorAll("details[data-group]")].map(d => [d.dataset.group, d]));
document.addEventListener("click", event => {
  const group = groups.get(event.target.closest("g[data-group]")?.dataset.group);
  if (!group) return;
  group.open = !group.open;
  if (group.open) group.scrollIntoView({behavior: "smooth", block: "nearest"});
});
if (groups.size > 1) {
  const bar = document.createElement("div");
  for (const [words, open] of [["open all", true], ["close all", false]]) {
    const button = bar.appendChild(document.createElement("button"));
    button.textContent = words; button.onclick = () => groups.forEach(d => { d.open = open; });
  }
  bar.className = "zoom"; groups.values().next().value.before(bar);
}
