#!/bin/sh
# Builds the Python package's wheel, installs it into a virtual environment and runs its tests.
#
#   tests/python.sh FOLDER           all tests, with PyTorch from PyPI, and the source distribution; FOLDER keeps the
#                                    environment for later runs
#   tests/python.sh FOLDER prepare   only what comes before the tests: wheel, source distribution and environment
#   tests/python.sh FOLDER test      only the tests
#   tests/python.sh FOLDER smoke     a wheel, and ten lines of NumPy: half a minute
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
what=${2-all}
cd "$(dirname "$0")/../python"
python=$folder/bin/python

install_wheel() {
    [ -x "$python" ] || python3 -m venv "$folder"
    rm -rf "$folder/wheel"
    "$python" -m pip wheel --quiet --no-deps --wheel-dir "$folder/wheel" .
    "$python" -m pip install --quiet numpy cffi
    "$python" -m pip install --quiet --no-deps --force-reinstall "$folder"/wheel/clnorm-*.whl
}

prepare() {
    install_wheel
    "$python" -m pip install --quiet auditwheel build
    "$python" -m auditwheel show "$folder"/wheel/clnorm-*.whl >"$folder/auditwheel.txt"
    grep "\"$(ls "$folder/wheel" | sed -n 's/^clnorm.*-\(manylinux.*\)\.whl$/\1/p')\"" "$folder/auditwheel.txt"
    rm -rf "$folder/sdist" "$folder/fresh"
    "$python" -m build --sdist --outdir "$folder/sdist" . >/dev/null
    python3 -m venv "$folder/fresh"
    "$folder/fresh/bin/python" -m pip install --quiet "$folder"/sdist/clnorm-*.tar.gz

    # PyTorch's wheel on PyPI is built for CUDA. Of its dependencies, these are enough to import it on a CPU.
    "$python" -m pip install --quiet --no-deps torch==2.15.0
    "$python" -m pip install --quiet --no-deps nvidia-cufile nvidia-cusparselt-cu13==0.8.1 nvidia-nvshmem-cu13==3.7.2 \
        nvidia-nccl-cu13==2.30.7
    "$python" -m pip install --quiet --no-warn-conflicts typing_extensions sympy networkx jinja2 fsspec filelock setuptools \
        expecttest hypothesis ml_dtypes mypy pyopencl pytest pytest-xdist
}

# Types, examples and documentation.
check_others() {
    "$folder/fresh/bin/python" ../examples/python/numpy_norm.py
    "$folder/fresh/bin/clnorm" --version
    "$python" -m mypy --cache-dir "$folder/mypy" src/clnorm
    "$python" -m mypy --strict --cache-dir "$folder/mypy" tests/typed_user.py
    "$python" tests/typed_user.py >/dev/null
    for example in ../examples/python/numpy_norm.py ../examples/python/pyopencl_pipeline.py; do
        "$python" "$example"
    done
    "$python" ../examples/python/train_gpt.py --steps 3 --no-picture
    "$python" document.py --check
}

# The other checks use one core, and run beside the tests.
run_tests() {
    check_others >"$folder/others.txt" 2>&1 &
    others=$!
    "$python" -m pytest --quiet --numprocesses 2 --dist loadfile tests
    wait "$others" || {
        cat "$folder/others.txt"
        exit 1
    }
    cat "$folder/others.txt"
}

case $what in
smoke)
    install_wheel
    "$python" ../examples/python/numpy_norm.py
    ;;
prepare) prepare ;;
test) run_tests ;;
all)
    prepare
    run_tests
    ;;
*)
    sed -n '2,9s/^# \{0,1\}//p' "../tests/python.sh"
    exit 2
    ;;
esac
