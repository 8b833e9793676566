package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/internal/app/config"
	"dedupledger/internal/doctor"
	"dedupledger/ledger/cold"
	"dedupledger/ledger/hot"
	"dedupledger/topics"
	"dedupledger/topics/acl"
)

// areaWithin bounds one area of `dedup doctor`: a service that hangs is a finding.
const areaWithin = time.Minute

// DoctorOptions are what `dedup doctor` is asked for.
type DoctorOptions struct {
	Config  *config.Config
	Drained bool // only whether everything is filtered to the end
	Deep    bool // every row of all months, too
	// Say is told how far long work is.
	Say func(format string, args ...any)
}

// patient is one look at everything. A service that does not answer is one finding,
// and what needs it is left out.
type patient struct {
	app
	ask     DoctorOptions
	router  routerType
	who     acl.Principal
	kafka   *kgo.Client
	adm     *kadm.Client
	conn    *pgx.Conn // nil: PostgreSQL does not answer
	ledger  uuid.UUID // zero: there is none, or it may not be used
	report  topics.Report
	found   doctor.Findings
	clocks  []doctor.Reading
	running bool
}

// Doctor looks at everything and tells each fault with its repair. The error is of
// a configuration that cannot be used, or ctx's.
func Doctor(ctx context.Context, o DoctorOptions) (doctor.Findings, error) {
	hot.RouteLibraryLog(slog.New(slog.DiscardHandler)) // what matters is a finding
	p := &patient{app: app{Options: Options{Config: o.Config, Log: slog.New(slog.DiscardHandler)}}, ask: o}
	if err := p.open(); err != nil {
		return nil, err
	}
	defer p.kafka.Close()
	defer func() {
		if p.conn != nil {
			_ = p.conn.Close(context.WithoutCancel(ctx)) // nothing was written
		}
	}()
	areas := []func(context.Context){p.lookAtKafka, p.lookAtTopics, p.lookAtRights, p.lookAtPostgres, p.lookAtRules, p.lookAtRedis, p.tellClocks, p.lookAtGroup, p.lookAtPositions, p.lookAtLedger, p.lookDeep}
	if o.Drained {
		areas = []func(context.Context){p.connect, p.lookDrained}
	}
	for _, area := range areas {
		area(ctx)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("looking at everything: %w", err)
		}
	}
	return p.found, nil
}

func (p *patient) open() (err error) {
	k := p.Config.Kafka
	if p.router, err = p.Config.Router(); err != nil {
		return fmt.Errorf("compiling the topic names: %w", err)
	}
	p.who = acl.Principal{Name: k.Principal(), Bootstrap: strings.Join(k.Brokers, ",")}
	p.kafka, err = kgo.NewClient(p.clientOptions()...)
	if err != nil {
		return fmt.Errorf("making the Kafka client: %w", err)
	}
	p.adm = kadm.NewClient(p.kafka)
	return nil
}

// clientOptions are of clients that say soon that a broker does not answer.
func (p *patient) clientOptions() []kgo.Opt {
	return append(KafkaOptions(p.Config.Kafka), kgo.ClientID("dedup-ledger-doctor"), kgo.RequestRetries(2), kgo.RetryTimeout(15*time.Second), kgo.RecordDeliveryTimeout(15*time.Second))
}

func (p *patient) explain(err error) error { return ExplainKafka(p.Config.Kafka, err) }

func (p *patient) add(fs doctor.Findings) { p.found = append(p.found, fs...) }

// failed notes that an area could not be looked at.
func (p *patient) failed(area, repair string, err error) {
	line := strings.Join(strings.Fields(err.Error()), " ") // a driver may write several
	p.found = append(p.found, doctor.Finding{Level: doctor.Fail, Area: area, Text: line, Repair: repair})
}

func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, areaWithin, fmt.Errorf("no answer within %s", areaWithin))
}

func (p *patient) lookAtKafka(ctx context.Context) {
	ctx, cancel := within(ctx)
	defer cancel()
	c, err := doctor.AskCluster(ctx, p.adm)
	if err != nil {
		p.failed("kafka", "kafka.brokers; is it running?", p.explain(err))
		p.adm = nil
		return
	}
	c.Trial = doctor.Try(ctx, p.clientOptions(), p.Config.Kafka.Group, p.someClean(ctx))
	p.clocks = append(p.clocks, c.Trial.Clock)
	p.add(c.Judge(p.explain))
}

// someClean is a clean topic that is there, or "".
func (p *patient) someClean(ctx context.Context) string {
	all, err := p.adm.ListTopics(kadm.WithAuthorizedOps(ctx))
	if err != nil {
		return ""
	}
	for _, name := range all.Names() {
		if clean, err := p.router.Clean(name); err == nil && all.Has(clean) {
			return clean
		}
	}
	return ""
}

func (p *patient) lookAtTopics(ctx context.Context) {
	if p.adm == nil {
		return
	}
	ctx, cancel := within(ctx)
	defer cancel()
	c := p.Config
	report, err := topics.Ensure(ctx, p.adm, topics.Plan{
		Router: p.router, MaxRecordBytes: c.Topics.MaxRecordBytes, Create: topics.Create(c.Topics.Create),
		Bootstrap: p.who.Bootstrap, Principal: p.who.Name, CheckOnly: true, Partial: true,
	})
	if err != nil {
		p.failed("topics", "", p.explain(err))
		return
	}
	p.report = report
	p.add(doctor.JudgeTopics(&report, p.router.IsRaw, p.who))
	set, err := c.Rules()
	if err != nil {
		p.failed("rules", "dedup config check", err)
		return
	}
	if shortest, _ := set.Windows(); shortest.Set {
		p.add(doctor.JudgeWindows(doctor.Window{Length: shortest.Value, At: shortest.At.String()},
			doctor.RawRetentions(&report, p.router.IsRaw), c.Topics.Create.RawRetention))
	}
}

func (p *patient) lookAtRights(ctx context.Context) {
	if p.adm == nil {
		return
	}
	missing, err := p.missingRights(ctx)
	if err != nil {
		p.failed("acl", "", p.explain(err))
		return
	}
	p.add(doctor.JudgeRights(missing))
}

func (p *patient) missingRights(ctx context.Context) (acl.Rights, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	look := p.newRights(p.kafka, p.router)
	err := look.check(ctx)
	if lacking, ok := errors.AsType[*acl.MissingError](err); ok {
		return lacking.Rights, nil
	}
	if err == nil && len(look.raw) == 0 {
		return acl.Raw(p.router.RawNames()), nil // hidden, or not there: nobody can tell
	}
	return nil, err
}

// MissingRights are the filter's rights on Kafka that are missing, as the commands
// that grant them.
func MissingRights(ctx context.Context, c *config.Config) ([]string, error) {
	p := &patient{app: app{Options: Options{Config: c, Log: slog.New(slog.DiscardHandler)}}}
	if err := p.open(); err != nil {
		return nil, err
	}
	defer p.kafka.Close()
	missing, err := p.missingRights(ctx)
	if err != nil {
		return nil, p.explain(err)
	}
	return p.who.Commands(missing), nil
}

// connect opens PostgreSQL and the ledger in it.
func (p *patient) connect(ctx context.Context) {
	ctx, cancel := within(ctx)
	defer cancel()
	conn, err := cold.Connect(ctx, p.coldConfig("dedup doctor"))
	if err != nil {
		p.failed("postgres", "postgres.url; is it running?", ExplainPostgres(p.Config.Postgres, err))
		return
	}
	p.conn = conn
	cfg := p.coldConfig("dedup doctor")
	cfg.RequireSyncStandby = false // judged with the settings
	l, err := cold.Open(ctx, cfg)
	if err != nil {
		p.failed("postgres", "", ExplainPostgres(p.Config.Postgres, err))
		return
	}
	p.ledger = l.ID()
	l.Close()
}
