"""Results as a static site: an index, a page a kernel, a comparison; read without a network."""
