"""What comes from outside, and what goes there: bounded reading, JSON within limits, schemas, writing in one step.

Every reader of files goes through here, so that no content can take the process along: it is read up to a limit,
its nesting, its digits and its values are counted before anything is built of them, and each field has its type. What
is refused is a `graphc.errors.FileError`, with the file and the place in it.
"""
