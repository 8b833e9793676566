#!/bin/sh
# Installs what native Kafka, Redis, PostgreSQL and PgBouncer need for tests and
# benchmarks.
#
#   install.sh [FOLDER]     FOLDER: where Kafka's jars go, default .services/kafka under the repository
#
# Debian packages are installed only by root on a system with apt-get, and only
# those whose program is missing. Elsewhere what is missing is named, exit 1.
# Running it again does nothing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=${1:-${DEDUP_SERVICES:-$root/.services}/kafka}
kafka=4.3.1

# PostgreSQL's server binaries are in a versioned folder, not on PATH.
have_postgres() {
	for p in /usr/lib/postgresql/*/bin/initdb; do
		[ -x "$p" ] && return 0
	done
	command -v initdb >/dev/null 2>&1
}

missing=
have_postgres || missing="$missing postgresql-15"
command -v redis-server >/dev/null 2>&1 || missing="$missing redis-server"
command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ] || missing="$missing pgbouncer"
command -v java >/dev/null 2>&1 || missing="$missing openjdk-17-jre-headless"
# The tests are built with the race detector, which needs a C compiler.
command -v gcc >/dev/null 2>&1 || command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
if [ ! -f "$folder/libs/kafka_2.13-$kafka.jar" ]; then
	command -v mvn >/dev/null 2>&1 || missing="$missing maven"
fi

if [ -n "$missing" ]; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		echo "install.sh: missing:$missing. Install them, or run this as root on Debian." >&2
		exit 1
	fi
	echo "install.sh: installing$missing"
	# The packages' own servers are not wanted: tests start their own on free
	# ports. policy-rc.d keeps apt from starting them; one that is there stays.
	policy=
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		policy=/usr/sbin/policy-rc.d
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
		trap 'rm -f "$policy"' EXIT
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	# shellcheck disable=SC2086 # a list of package names
	apt-get install -qq -y --no-install-recommends $missing
	if [ -n "$policy" ]; then
		rm -f "$policy"
		trap - EXIT
	fi
fi

if [ -f "$folder/libs/kafka_2.13-$kafka.jar" ]; then
	echo "install.sh: Kafka $kafka is in $folder/libs"
	exit 0
fi

# The folder gets its name when it is complete: an interrupted run leaves none.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# slf4j-simple writes the broker's warnings to its log file; with slf4j-nop a
# broker that cannot start would say nothing.
cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>dedupledger</groupId>
  <artifactId>services</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$kafka</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
echo "install.sh: fetching Kafka $kafka by Maven"
mkdir -p "$folder"
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/libs"
rm -rf "$folder/libs.new" "$folder/libs"
cp -R "$work/libs" "$folder/libs.new"
mv "$folder/libs.new" "$folder/libs"
echo "install.sh: $(find "$folder/libs" -name '*.jar' | wc -l | tr -d ' ') jars in $folder/libs"
