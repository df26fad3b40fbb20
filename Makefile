# Two commands for a fresh clone: `make demo` trains a network here, `make test` proves the code right.
EPOCHS ?= 10
export PYTHON

.PHONY: demo test check clean

demo:
	@tools/setup demo
	@.venv/bin/pocketgrad train --model lenet5 --data embedded --epochs $(EPOCHS) --batch 64 --seed 0

test:
	@tools/setup test
	@.venv/bin/python tools/test

check:
	@tools/setup test
	@.venv/bin/python tools/check

clean:
	@tools/setup clean
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist src/*.egg-info
