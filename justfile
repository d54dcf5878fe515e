# Verbs of this repository. Each line also works typed by hand.

# list the verbs
default:
    @just --list

# race every table against its rivals on this machine
race *args:
    cargo run --release -- race {{args}}

# stress, histories and controls
torture *args:
    cargo run --release -- torture {{args}}

# caches and their stores under kill -9, so often in each test
kills count="500":
    QUINTET_KILLS={{count}} cargo test -p quintet --all-features --test stores survives -- --nocapture --test-threads=1

# what the README promises
test:
    cargo test --workspace

# format everything
fmt:
    cargo fmt --all

# every lint as an error
lint:
    cargo clippy --workspace --all-targets --all-features -- -D warnings

# documentation, opened in a browser
docs:
    cargo doc --workspace --no-deps --all-features --open

# all lanes of the continuous build, or those named
ci *lanes:
    .ci/run {{lanes}}

# what needs hours, or the lanes named of it
soak *lanes:
    .ci/soak {{lanes}}
