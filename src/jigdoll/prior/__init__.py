"""The video priors: models that know how things move, behind one socket (`protocols.VideoPrior`)."""
