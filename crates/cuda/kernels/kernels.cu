// Every kernel of Sudare, for nvcc, NVRTC and the emulator. A launch names one of them.
#include "switch.cuh"
#include "rates.cuh"
PARTS(6) PARTS(7) PARTS(8) PARTS(9) PARTS(10) PARTS(11) PARTS(12)
