#!/bin/bash
# Runs inside of the container of unit.py, under systemd: uses the service as an operator does. Notes go to /notes.
set -euo pipefail
exec >/notes/log 2>&1
trap 'echo "status $?" >/notes/status; systemctl --no-block poweroff' EXIT
set -x
PORT=8080 NODE=8899 FOLDER=/var/lib/blotter

until_answered() {
    for _ in $(seq 100); do curl -sf "$1" >/dev/null && return; sleep 0.1; done
    systemctl status --no-pager "$2"
    journalctl --no-pager -u "$2"
    return 1
}

if [ -n "$PACKAGE" ]; then
    dpkg -i "$PACKAGE"
    # Installed, and neither started nor enabled.
    test "$(systemctl is-active blotter)" = inactive
    test "$(systemctl is-enabled blotter)" = disabled
    cat /notes/settings.toml >>/etc/blotter/blotter.toml
    systemctl enable --now blotter
fi
systemd-run --unit=chain --property=DynamicUser=yes --property=StateDirectory=chain "$PROGRAM" \
    demo --node 127.0.0.1:$NODE --listen 127.0.0.1:8081 --large 100 --data-dir /var/lib/chain
until_answered http://127.0.0.1:8081/readyz chain
until_answered http://127.0.0.1:$PORT/readyz blotter
key=$(journalctl -o cat -u blotter | grep -o -m1 'blt_[A-Za-z0-9_-]*')
wallet=$(journalctl -o cat -u chain | grep -oP -m1 '^wallet  *\K\S+(?= \(sol)')
history() { curl -sN -H "x-api-key: $key" "http://127.0.0.1:$PORT/v1/wallets/$wallet/history"; }

# A whole history; the file of settings read again; the socket of the operator, as root.
history | tail -n 1 | grep '"complete":true' >/notes/first
printf '[server]\npage_wait = "3s"\n' >>/etc/blotter/blotter.toml
systemctl reload blotter
for _ in $(seq 100); do
    "$PROGRAM" admin status --json --data-dir $FOLDER >/notes/admin
    grep -q page_wait $FOLDER/audit.ndjson && break
    sleep 0.1
done
grep -q page_wait $FOLDER/audit.ndjson

# A kill is started again, and what was stored is there.
systemctl kill -s KILL blotter
sleep 3
until_answered http://127.0.0.1:$PORT/readyz blotter
history | tail -n 1 | grep '"complete":true' | cmp - /notes/first
test "$(systemctl show -P NRestarts blotter)" = 1

systemd-analyze security --no-pager --threshold=15 blotter | tail -n 1 >/notes/security
pid=$(systemctl show -P MainPID blotter)
grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp|VmRSS):' "/proc/$pid/status" >/notes/process
stat -c '%a %U %n' /var/lib/private/blotter /var/lib/private/blotter/* >/notes/files
systemctl stop blotter
test "$(systemctl show -P Result blotter)" = success
[ -n "$PACKAGE" ] || exit 0

# Installed again it is restarted, with its settings and what it stored; removed it is stopped, and both stay.
systemctl start blotter
until_answered http://127.0.0.1:$PORT/readyz blotter
pid=$(systemctl show -P MainPID blotter)
dpkg -i --force-confold "$PACKAGE"
until_answered http://127.0.0.1:$PORT/readyz blotter
test "$(systemctl show -P MainPID blotter)" != "$pid"
history | tail -n 1 | grep '"complete":true' | cmp - /notes/first
dpkg -r blotter
test "$(systemctl is-active blotter)" = inactive
test ! -e $PROGRAM
grep -q page_wait /etc/blotter/blotter.toml
test -s /var/lib/private/blotter/trades.redb
dpkg -P blotter
test ! -e /etc/blotter/blotter.toml
echo 'the package: installed, installed again while it served, removed with its data kept, purged' >/notes/package
