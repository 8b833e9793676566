package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"dedupledger/internal/devservices"
)

const (
	brokers = 3
	// ways are the most filters at once: each has links of its own.
	ways       = 4
	partitions = 4 // of every topic, at first
	sentinel   = "facts"
)

// stage is all that a campaign runs on.
type stage struct {
	o        options
	out      io.Writer
	id       string
	dir      string
	program  string
	services *devservices.Services

	kafka      *devservices.KafkaCluster
	kafkaLinks [brokers][ways]*link
	client     *kgo.Client // direct, for looking and harming
	admin      *kadm.Client

	redis      []*devservices.Redis // primary and replica, or the cluster's
	sentinel   *devservices.Redis
	ring       []*link       // Redis as its replica and Sentinel reach it
	doors      [ways]*door   // Sentinel, as the filters of a way reach it
	redisLinks [ways][]*link // likewise Sentinel's door, and Redis

	pgMu     sync.Mutex
	primary  *devservices.Postgres
	standby  *devservices.Postgres
	standbys int // made so far; each has its own name
	pgLinks  [ways]*link
	database string

	raw, outputs []string
	group        string
	renamed      int // times

	widthMu sync.Mutex
	widths  map[string]int // partitions of topics that have grown
}

// width is how many partitions a topic has.
func (s *stage) width(topic string) int {
	s.widthMu.Lock()
	defer s.widthMu.Unlock()
	return max(partitions, s.widths[topic])
}

func (s *stage) widen(topic string, to int) {
	s.widthMu.Lock()
	defer s.widthMu.Unlock()
	if s.widths == nil {
		s.widths = map[string]int{}
	}
	s.widths[topic] = to
}

// raise starts everything at once.
func raise(ctx context.Context, o options, out io.Writer) (*stage, error) {
	s := &stage{o: o, out: out, id: uuid.NewString()[:8], program: o.program}
	s.group, s.database = "dedup-"+s.id, "dedup_"+s.id
	for _, name := range []string{"as2", "as4"} {
		s.raw = append(s.raw, "raw-ingest."+s.id+"."+name)
		s.outputs = append(s.outputs, "clean."+s.id+"."+name)
	}
	s.outputs = append(s.outputs, "duplicates."+s.id, "dead-letter."+s.id)
	var err error
	if s.services, err = devservices.New(ctx, devservices.Options{}); err != nil {
		return s, fmt.Errorf("preparing services: %w", err)
	}
	if s.dir = o.logs; s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "dedup-chaos-"); err != nil {
			return s, fmt.Errorf("making a folder: %w", err)
		}
	} else if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return s, fmt.Errorf("making the folder of logs: %w", err)
	}
	var g errgroup.Group
	for what, step := range map[string]func(context.Context) error{
		"the program is built": s.build, "Kafka is up": s.startKafka, "Redis is up": s.startRedis, "PostgreSQL is up": s.startPostgres,
	} {
		g.Go(func() error {
			began := time.Now()
			err := step(ctx)
			fmt.Fprintf(out, "%s after %s\n", what, time.Since(began).Round(time.Second))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return s, err
	}
	return s, s.prepare(ctx)
}

func (s *stage) close() error {
	var errs []error
	if s.client != nil {
		s.client.Close()
	}
	for i := range s.kafkaLinks {
		for _, l := range s.kafkaLinks[i] {
			if l != nil {
				l.close()
			}
		}
	}
	for way := range s.doors {
		if s.doors[way] != nil {
			s.doors[way].close()
		}
	}
	for _, l := range slices.Concat(append(s.redisLinks[:], s.ring, s.pgLinks[:])...) {
		if l != nil {
			l.close()
		}
	}
	if s.services != nil {
		errs = append(errs, s.services.Close())
	}
	if s.o.logs == "" && s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

func (s *stage) build(ctx context.Context) error {
	if s.program != "" {
		return nil
	}
	s.program = filepath.Join(s.dir, "dedup")
	c := exec.CommandContext(ctx, "go", "build", "-o", s.program, "dedupledger/cmd/dedup")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return nil
}

func (s *stage) startKafka(ctx context.Context) error {
	told := make([][]string, brokers)
	for n := range told {
		for range ways {
			at, err := reserve()
			if err != nil {
				return err
			}
			told[n] = append(told[n], at)
		}
	}
	var err error
	if s.kafka, err = s.services.StartKafkaCluster(ctx, told); err != nil {
		return fmt.Errorf("starting Kafka: %w", err)
	}
	for n := range told {
		for way, at := range told[n] {
			if s.kafkaLinks[n][way], err = openLink(fmt.Sprintf("kafka %d, filter %d", n+1, way), at, s.kafka.Via(n, way)); err != nil {
				return err
			}
		}
	}
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(s.kafka.Addrs()...), kgo.RetryTimeout(time.Minute), kgo.MetadataMinAge(200*time.Millisecond)); err != nil {
		return fmt.Errorf("making a client of Kafka: %w", err)
	}
	s.admin = kadm.NewClient(s.client)
	return nil
}

func (s *stage) startRedis(ctx context.Context) (err error) {
	if s.o.cluster {
		s.redis, err = s.services.StartRedisCluster(ctx, brokers)
		return err
	}
	var told [2]string
	for i := range told {
		if told[i], err = reserve(); err != nil {
			return err
		}
	}
	for i, at := range told {
		u, err := url.Parse("//" + at)
		if err != nil {
			return fmt.Errorf("reading a proxy's address: %w", err)
		}
		args := []string{"--replica-announce-ip", u.Hostname(), "--replica-announce-port", u.Port(), "--repl-diskless-sync-delay", "0"}
		if i > 0 {
			first, _ := url.Parse("//" + told[0]) // it was read above
			args = append(args, "--replicaof", first.Hostname()+" "+first.Port())
		}
		r, err := s.services.StartRedisWith(ctx, args...)
		if err != nil {
			return fmt.Errorf("starting Redis: %w", err)
		}
		l, err := openLink("redis "+strconv.Itoa(i), at, r.Addr())
		if err != nil {
			return err
		}
		s.redis, s.ring = append(s.redis, r), append(s.ring, l)
	}
	if s.sentinel, err = s.services.StartSentinel(ctx, sentinel, told[0], time.Second); err != nil {
		return fmt.Errorf("starting Sentinel: %w", err)
	}
	for way := range ways {
		if err := s.openRedis(ctx, way, told[:]); err != nil {
			return err
		}
	}
	return nil
}

// openRedis gives a way links of its own to Redis. Sentinel tells the addresses
// that Redis announces; the way's door puts those of its links in their place.
func (s *stage) openRedis(ctx context.Context, way int, told []string) error {
	instead := map[string]string{}
	for i, r := range s.redis {
		at, err := reserve()
		if err != nil {
			return err
		}
		l, err := openLink(fmt.Sprintf("redis %d, filter %d", i, way), at, r.Addr())
		if err != nil {
			return err
		}
		s.redisLinks[way] = append(s.redisLinks[way], l)
		instead[port(told[i])] = port(at)
	}
	var err error
	if s.doors[way], err = openDoor(ctx, s.sentinel.Addr(), instead); err != nil {
		return err
	}
	at, err := reserve()
	if err != nil {
		return err
	}
	l, err := openLink(fmt.Sprintf("sentinel, filter %d", way), at, s.doors[way].addr())
	if err != nil {
		return err
	}
	s.redisLinks[way] = append([]*link{l}, s.redisLinks[way]...)
	return nil
}

func (s *stage) startPostgres(ctx context.Context) (err error) {
	if s.primary, err = s.services.StartReplicable(ctx, "shared_buffers=64MB", "max_connections=120"); err != nil {
		return fmt.Errorf("starting PostgreSQL: %w", err)
	}
	if _, err := s.primary.CreateDatabase(ctx, s.database); err != nil {
		return err
	}
	for way := range ways {
		at, err := reserve()
		if err != nil {
			return err
		}
		if s.pgLinks[way], err = openLink(fmt.Sprintf("postgres, filter %d", way), at, s.primary.Addr()); err != nil {
			return err
		}
	}
	return s.addStandby(ctx)
}

// addStandby gives the primary a standby that its commits wait for.
func (s *stage) addStandby(ctx context.Context) (err error) {
	s.standbys++
	name := "standby" + strconv.Itoa(s.standbys)
	if s.standby, err = s.services.StartStandby(ctx, s.primary, name, "shared_buffers=64MB", "max_connections=120"); err != nil {
		return fmt.Errorf("making a standby: %w", err)
	}
	if s.o.async {
		return nil
	}
	if err := s.primary.SetSynchronous(ctx, name); err != nil {
		return err
	}
	return s.primary.AwaitSynchronous(ctx, 1)
}

// asAdmin connects to the ledger's database on the primary.
func (s *stage) asAdmin(ctx context.Context) (*pgx.Conn, error) {
	s.pgMu.Lock()
	at := s.primary.Addr()
	s.pgMu.Unlock()
	c, err := pgx.Connect(ctx, "postgres://postgres@"+at+"/"+s.database+"?sslmode=disable")
	if err != nil {
		return nil, fmt.Errorf("connecting to the ledger's database: %w", err)
	}
	return c, nil
}

func redisClient(r *devservices.Redis) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: r.Addr(), DisableIdentity: true, MaxRetries: -1, DialerRetries: 1})
}
