#!/bin/sh
# The harness runs scripts/get_openfhe.sh before it builds. This entry has its own library: nothing is fetched.
