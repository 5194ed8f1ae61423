# An empty repository. The argument is core.fsync, or nothing for the default of git.
git init --quiet .
git config user.name powercut
git config user.email powercut@localhost
git config maintenance.auto false
test -z "$1" || git config core.fsync "$1"
