"""The prior that ships in the package: a small video diffusion model of motion colours."""
