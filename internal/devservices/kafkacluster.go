package devservices

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// directPort, controllerPort and firstVia are a cluster broker's ports.
const (
	directPort = iota
	controllerPort
	firstVia
)

// clusterHeap is small: a test's cluster holds little, and three run at once.
const clusterHeap = "-Xmx384m"

// KafkaCluster is three brokers or so, each a controller too. Topics have three
// replicas where they are not told otherwise, and two must be in sync.
type KafkaCluster struct {
	Brokers []*Kafka
}

// Addrs are the addresses of the brokers themselves, host:port.
func (c *KafkaCluster) Addrs() (all []string) {
	for _, b := range c.Brokers {
		all = append(all, b.Addr())
	}
	return all
}

// Via is where broker n listens for those that reach it by the way of a proxy.
func (c *KafkaCluster) Via(n, way int) string { return address(c.Brokers[n].ports[firstVia+way]) }

// StartKafkaCluster starts a cluster, native in any case. advertised[n][way] is
// the host:port that broker n tells clients which come by that way: a proxy's, in
// front of Via(n, way). Every way is a listener of its own, because clients follow
// the address that the listener advertises.
func (s *Services) StartKafkaCluster(ctx context.Context, advertised [][]string, settings ...string) (*KafkaCluster, error) {
	libs, err := kafkaLibs(s.opts.Root)
	if err != nil {
		return nil, unavailable("kafka", err)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, unavailable("kafka", absent("java is not on PATH"))
	}
	c := &KafkaCluster{}
	for range advertised {
		folder, err := s.folder("kafka")
		if err != nil {
			return nil, err
		}
		k := &Kafka{Server: Server{name: "kafka", folder: folder, dispose: syscall.SIGKILL}, version: jarVersion(libs)}
		k.ready = func(ctx context.Context) error {
			_, err := kafkaVersion(ctx, []string{k.Addr()})
			return err
		}
		s.onClose(k.Close)
		c.Brokers = append(c.Brokers, k)
	}
	if err := c.takePorts(advertised); err != nil {
		return nil, err
	}
	id := uuid.New()
	var g errgroup.Group
	for n, k := range c.Brokers {
		g.Go(func() error {
			return c.start(ctx, k, java, libs, base64.RawURLEncoding.EncodeToString(id[:]), c.properties(n, advertised[n], settings))
		})
	}
	return c, g.Wait()
}

// takePorts chooses all of them before any broker starts: each must know the
// others' controllers.
func (c *KafkaCluster) takePorts(advertised [][]string) error {
	var held []*heldPort
	defer func() {
		for _, h := range held {
			h.release()
		}
	}()
	for n, k := range c.Brokers {
		for range firstVia + len(advertised[n]) {
			h, err := holdPort()
			if err != nil {
				return err
			}
			held, k.ports = append(held, h), append(k.ports, h.port)
		}
	}
	return nil
}

func (c *KafkaCluster) start(ctx context.Context, k *Kafka, java, libs, cluster, text string) error {
	run := func(args ...string) command {
		return command{
			path: java, dir: k.folder, log: filepath.Join(k.folder, "kafka.log"),
			args: append([]string{
				clusterHeap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
				"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(libs, "*"),
			}, args...),
			orphaned: syscall.SIGKILL, asked: syscall.SIGTERM,
		}
	}
	file := filepath.Join(k.folder, "server.properties")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("configuring Kafka: %w", err)
	}
	if err := runToEnd(ctx, run("kafka.tools.StorageTool", "format", "--cluster-id="+cluster, "-c", file)); err != nil {
		return fmt.Errorf("formatting Kafka's log folder: %w", err)
	}
	k.unit = run("kafka.Kafka", file)
	return k.Start(ctx)
}

func (c *KafkaCluster) properties(n int, advertised, settings []string) string {
	k := c.Brokers[n]
	var voters []string
	for i, b := range c.Brokers {
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, address(b.ports[controllerPort])))
	}
	listeners := []string{"PLAINTEXT://" + k.Addr(), "CONTROLLER://" + address(k.ports[controllerPort])}
	told := []string{"PLAINTEXT://" + k.Addr()}
	protocols := []string{"PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT"}
	for way, to := range advertised {
		name := "WAY" + strconv.Itoa(way)
		listeners = append(listeners, name+"://"+address(k.ports[firstVia+way]))
		told = append(told, name+"://"+to)
		protocols = append(protocols, name+":PLAINTEXT")
	}
	replicas := strconv.Itoa(min(3, len(c.Brokers)))
	inSync := strconv.Itoa(max(1, min(3, len(c.Brokers))-1))
	return strings.Join(append([]string{
		"process.roles=broker,controller",
		"node.id=" + strconv.Itoa(n+1),
		"controller.quorum.voters=" + strings.Join(voters, ","),
		"listeners=" + strings.Join(listeners, ","),
		"advertised.listeners=" + strings.Join(told, ","),
		"listener.security.protocol.map=" + strings.Join(protocols, ","),
		"controller.listener.names=CONTROLLER",
		"inter.broker.listener.name=PLAINTEXT",
		"log.dirs=" + filepath.Join(k.folder, "log"),
		"num.network.threads=1",
		"num.io.threads=4",
		"default.replication.factor=" + replicas,
		"min.insync.replicas=" + inSync,
		"offsets.topic.replication.factor=" + replicas,
		"transaction.state.log.replication.factor=" + replicas,
		"transaction.state.log.min.isr=" + inSync,
		"offsets.topic.num.partitions=3",
		"transaction.state.log.num.partitions=3",
		"group.initial.rebalance.delay.ms=0",
		"share.coordinator.state.topic.replication.factor=1",
		"share.coordinator.state.topic.min.isr=1",
		"auto.create.topics.enable=false",
		"broker.session.timeout.ms=4000",
		"broker.heartbeat.interval.ms=1000",
		"replica.lag.time.max.ms=4000",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
		"",
	}, settings...), "\n")
}
