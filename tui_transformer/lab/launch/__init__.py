"""Starting training: in a thread, in a process, in a queue."""
