# What the pages that run a cluster of processes share; to be read by bash, in the checkout.
# Who dies is noticed after 3 seconds here, not after 9.

up() {  # up OPTION...: start a cluster in ./kraft-wire-cluster, and wait until all of it is there
  kraft-wire cluster up --override broker.session.timeout.ms=3000 \
    --override broker.heartbeat.interval.ms=300 "$@" >up.log 2>&1 &
  echo $! >up.pid
  until [ "$(kraft-wire cluster status 2>&1 | grep -cE ' (Leader|Follower|Broker) ')" -ge "$(nodes)" ]; do
    kill -0 "$(cat up.pid)" || break
    sleep 0.2
  done
}

nodes() { ls kraft-wire-cluster/node-*.properties 2>&1 | wc -l; }

down() {  # Ctrl-C
  kill -INT "$(cat up.pid)"
  while kill -0 "$(cat up.pid)" 2>/dev/null; do sleep 0.1; done
}

servers() {  # the brokers whose processes run, as clients want them
  python -c 'import json
print(*["%(host)s:%(port)d" % node for node in json.load(open("kraft-wire-cluster/cluster.json"))["nodes"]
        if node["role"] == "broker" and node["pid"]], sep=",")'
}

topics() { kraft-wire topics "$@" --bootstrap-server "$(servers | cut -d, -f1)"; }

until_shown() {  # until_shown PATTERN TOPIC: describe a topic until the pattern is there, and show that
  until topics describe "$2" >shown.txt 2>&1 && grep -qE "$1" shown.txt; do :; done
  cat shown.txt
}

produce() {  # produce TOPIC: lines in, acknowledged by all that are in sync
  kcat -P -b "$(servers)" -t "$1" -X acks=all -X enable.idempotence=true \
    -X message.timeout.ms="${PATIENCE_MS:-30000}" 2>&1 | grep 'Delivery failed'
}

consume() { kcat -C -b "$(servers)" -t "$1" -o beginning -e -q; }  # consume TOPIC: all of it

in_transaction() {  # in_transaction ID LINE...: key:value lines in one transaction, which is committed
  printf '%s\n' "${@:2}" | kcat -P -b "$(servers)" -t t -K: -X transactional.id="$1" 2>/dev/null
}

begin_transaction() {  # begin_transaction ID LINE...: the same, by a process that never commits
  python - "$(servers)" "$@" >/dev/null 2>&1 <<'END' &
import sys, time
from confluent_kafka import Producer
servers, name, *lines = sys.argv[1:]
producer = Producer({"bootstrap.servers": servers, "transactional.id": name, "transaction.timeout.ms": 30_000})
producer.init_transactions()
producer.begin_transaction()
for line in lines:
    key, value = line.split(":")
    producer.produce("t", value, key)
producer.flush()
time.sleep(200)
END
  echo $! >transaction.pid
  disown
}

uncommitted() {  # uncommitted TOPIC: all of it, as a reader who asks for everything
  kcat -C -b "$(servers)" -t "$1" -o beginning -e -q -X isolation.level=read_uncommitted
}

transactions() { kraft-wire transactions "$@" --bootstrap-server "$(servers | cut -d, -f1)"; }
