"""The Playground's parts."""
