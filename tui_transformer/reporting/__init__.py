"""Reports: what runs and studies show, and what they do not, as Markdown, LaTeX and HTML. No torch, no Textual."""
