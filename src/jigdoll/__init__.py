"""jigdoll: a 3D character and a sentence in, an animation clip out."""

import os

__version__ = "0.1.0"

# torch and the compiled kernels have a pool of threads each and take turns. Threads that spin while they wait take the
# cores from those that work (a tenth of the time of a clip on two cores). It counts if set before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
