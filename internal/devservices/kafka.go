package devservices

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Kafka is a one-node Kafka broker of our own (KRaft, broker and controller in
// one process).
type Kafka struct {
	Server
	version string
}

// KafkaOptions of one broker.
type KafkaOptions struct {
	// Advertised is the host:port the broker tells its clients; "" is its own.
	// A proxy in front of the broker names itself here, since clients follow
	// the advertised address.
	Advertised string

	// Restricted gives the broker an authorizer and a third port, RESTRICTED; it is
	// native then, whatever the others are.
	Restricted bool

	secure *KafkaSecurity // a third port, SASL_SSL; see StartSecureKafka
}

const kafkaHeap = "-Xmx1g"

func startKafka(ctx context.Context, folder, libs string, o KafkaOptions) (*Kafka, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, absent("java is not on PATH")
	}
	k := &Kafka{Server: Server{name: "kafka", folder: folder, dispose: syscall.SIGKILL}}
	k.version = jarVersion(libs)
	run := func(args ...string) command {
		return command{
			path: java, args: append([]string{kafkaHeap, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(libs, "*")}, args...),
			dir: folder, log: filepath.Join(folder, "kafka.log"),
			orphaned: syscall.SIGKILL, asked: syscall.SIGTERM,
		}
	}
	properties := filepath.Join(folder, "server.properties")
	formatted := false
	k.arrange = func(ports []int) (unit, error) {
		text, err := kafkaProperties(folder, ports, o)
		if err != nil {
			return command{}, err
		}
		if err := os.WriteFile(properties, []byte(text), 0o600); err != nil {
			return command{}, fmt.Errorf("configuring Kafka: %w", err)
		}
		if !formatted {
			if err := formatKafka(ctx, run, properties, o.secure.formatting()...); err != nil {
				return command{}, err
			}
			formatted = true
		}
		return run("kafka.Kafka", properties), nil
	}
	k.ready = func(ctx context.Context) error {
		_, err := kafkaVersion(ctx, []string{k.Addr()})
		return err
	}
	switch {
	case o.secure != nil:
		return k, k.launch(ctx, securePort+1)
	case o.Restricted:
		return k, k.launch(ctx, restrictedPort+1)
	}
	return k, k.launch(ctx, 2)
}

func formatKafka(ctx context.Context, run func(...string) command, properties string, more ...string) error {
	id := uuid.New()
	cluster := base64.RawURLEncoding.EncodeToString(id[:])
	// One argument, not two: an id may begin with "-", and the tool would take
	// it for an option. One start in 64 failed so.
	c := run(append([]string{"kafka.tools.StorageTool", "format", "--cluster-id=" + cluster, "-c", properties}, more...)...)
	// It runs once and briefly: the optimising compiler would cost more than it gives.
	c.args = append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}, c.args...)
	if err := runToEnd(ctx, c); err != nil {
		return fmt.Errorf("formatting Kafka's log folder: %w", err)
	}
	return nil
}

// runToEnd runs a command that ends by itself.
func runToEnd(ctx context.Context, c command) error {
	p, err := spawn(c)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.kill())
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w\nend of its log:\n%s", filepath.Base(c.path), p.err, tail(c.log))
	}
	return nil
}

func kafkaProperties(folder string, ports []int, o KafkaOptions) (string, error) {
	if o.Advertised == "" {
		o.Advertised = address(ports[0])
	}
	text := strings.NewReplacer(
		"{addr}", address(ports[0]), "{controller}", address(ports[1]),
		"{advertised}", o.Advertised, "{logs}", filepath.Join(folder, "log"),
	).Replace(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{controller}
listeners=PLAINTEXT://{addr},CONTROLLER://{controller}
advertised.listeners=PLAINTEXT://{advertised}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={logs}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
auto.create.topics.enable=false
`)
	switch {
	case o.Restricted:
		return text + restrictedProperties(ports, o.Advertised), nil
	case o.secure == nil:
		return text, nil
	}
	more, err := o.secure.properties(folder, ports, o.Advertised)
	return text + more, err
}

// kafkaVersion asks the broker. Kafka tells no version, so the answer is a
// guess from the requests it knows; that it answers, and knows itself as a
// broker of the cluster, is what readiness needs. Only the given addresses are
// asked: the advertised one may be a proxy that is not there yet.
func kafkaVersion(ctx context.Context, brokers []string) (string, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RequestRetries(0))
	if err != nil {
		return "", fmt.Errorf("reading Kafka's address: %w", err)
	}
	defer c.Close()
	seed := c.SeedBrokers()[0]
	at := strings.Join(brokers, ",")
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Topics = []kmsg.MetadataRequestTopic{}
	answer, err := seed.Request(ctx, metadata)
	if err != nil {
		return "", fmt.Errorf("asking Kafka at %s for its brokers: %w", at, err)
	}
	if m, ok := answer.(*kmsg.MetadataResponse); !ok || len(m.Brokers) == 0 {
		return "", fmt.Errorf("kafka at %s has no broker yet", at)
	}
	versions := kmsg.NewPtrApiVersionsRequest()
	versions.ClientSoftwareName, versions.ClientSoftwareVersion = "dedup-ledger", "dev"
	answer, err = seed.Request(ctx, versions)
	if err != nil {
		return "", fmt.Errorf("asking Kafka at %s for its version: %w", at, err)
	}
	v, ok := answer.(*kmsg.ApiVersionsResponse)
	if !ok {
		return "", fmt.Errorf("kafka at %s does not tell what it knows", at)
	}
	return kversion.FromApiVersionsResponse(v).VersionGuess(), nil
}

// kafkaLibs is the folder install.sh fills.
func kafkaLibs(root string) (string, error) {
	folder := os.Getenv(EnvFolder)
	if folder == "" {
		folder = filepath.Join(root, ".services")
	}
	libs := filepath.Join(folder, "kafka", "libs")
	if jarVersion(libs) == "" {
		return "", absent("no Kafka jars in .services/kafka/libs or $" + EnvFolder + "/kafka/libs")
	}
	return libs, nil
}

// jarVersion is the version in the name of Kafka's server jar.
func jarVersion(libs string) string {
	jars, err := filepath.Glob(filepath.Join(libs, "kafka_2.13-*.jar"))
	if err != nil || len(jars) == 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), "kafka_2.13-"), ".jar")
}

// Folder is where a native broker has the log of a partition.
func (k *Kafka) Folder(topic string, partition int32) string {
	return filepath.Join(k.folder, "log", fmt.Sprintf("%s-%d", topic, partition))
}
