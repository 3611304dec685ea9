"""Motion from a video prior: the learnable motion, the guidance, the losses and the loop that joins them."""
