"""What is wrong with a pose, by name, differentiable."""
