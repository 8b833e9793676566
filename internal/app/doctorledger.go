package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"dedupledger/internal/doctor"
	"dedupledger/internal/rules"
	"dedupledger/ledger/cold"
	"dedupledger/ledger/hot"
	"dedupledger/topics"

	"github.com/google/uuid"
)

func (p *patient) lookAtPostgres(ctx context.Context) {
	p.connect(ctx)
	if p.conn == nil {
		return
	}
	ctx, cancel := within(ctx)
	defer cancel()
	s, err := doctor.AskServer(ctx, p.conn)
	if err != nil {
		p.failed("postgres", "", err)
		return
	}
	s.Pool = p.Config.Postgres.Pool.Max
	s.Required = p.Config.Postgres.RequireSyncStandby
	p.add(s.Judge())
	before := time.Now()
	var theirs time.Time
	if err := p.conn.QueryRow(ctx, "select clock_timestamp()").Scan(&theirs); err == nil {
		p.clocks = append(p.clocks, doctor.Reading{Who: "PostgreSQL", Before: before, Theirs: theirs, After: time.Now()})
	}
}

// lookAtRules compares the configuration's rules with the active ones, and with
// those of the processes at work.
func (p *patient) lookAtRules(ctx context.Context) {
	set, err := p.Config.Rules()
	if err != nil {
		return // told with the windows
	}
	var r doctor.Rules
	for _, rule := range set.Observing() {
		r.Observing = append(r.Observing, strings.TrimSpace(rule.Match.Value+" "+rule.Key.Value)+" ("+rule.Mode.At.String()+")")
	}
	if p.ledger == uuid.Nil {
		return
	}
	ctx, cancel := within(ctx)
	defer cancel()
	if err := p.askRules(ctx, set, &r); err != nil {
		p.failed("rules", "", err)
		return
	}
	p.add(r.Judge())
}

func (p *patient) askRules(ctx context.Context, set *rules.Set, r *doctor.Rules) error {
	ours, err := newMaking(p.Config, set)
	if err != nil {
		return err
	}
	active, err := cold.AskRules(ctx, p.conn)
	if err != nil {
		return err //nolint:wrapcheck // a sentence already
	}
	r.Ours, r.Active, r.Refused = ours.fingerprint, active.Fingerprint, ours.refused(&active)
	return doctor.AskRules(ctx, p.conn, r) //nolint:wrapcheck // likewise
}

func (p *patient) lookAtRedis(ctx context.Context) {
	id := p.ledger.String()
	h, err := hot.Open(p.hotConfig(id))
	if err != nil {
		p.failed("redis", "", err)
		return
	}
	defer func() { _ = h.Close() }() // nothing depends on it
	fs, clock := doctor.AskRedis(ctx, asked{h})
	p.clocks = append(p.clocks, clock)
	p.add(fs)
}

// asked gives the hot tier the doctor's words.
type asked struct{ *hot.Hot }

// Check tries with the circuit open or not: a first try always goes through.
func (a asked) Check(ctx context.Context) error {
	err := a.Hot.Check(ctx)
	if why := a.Trouble(); err != nil && why != "" {
		return fmt.Errorf("%s: %w", why, err)
	}
	return err
}

func (a asked) Memory(ctx context.Context) (doctor.Memory, error) {
	s, err := a.Stats(ctx)
	if err != nil {
		return doctor.Memory{}, err
	}
	return doctor.Memory{Policy: s.Policy, Used: s.UsedMemory, Limit: s.MaxMemory, Evicted: s.EvictedKeys, Time: s.Time}, nil
}

func (p *patient) tellClocks(context.Context) { p.add(doctor.JudgeClocks(p.clocks...)) }

func (p *patient) lookAtGroup(ctx context.Context) {
	if p.adm == nil {
		return
	}
	ctx, cancel := within(ctx)
	defer cancel()
	g, err := doctor.AskGroup(ctx, p.adm, p.Config.Kafka.Group)
	if err != nil {
		p.failed("group", "", p.explain(err))
		return
	}
	p.running = len(g.Members) > 0
	p.add(g.Judge())
}

// positions are nil where they cannot be read; that is told.
func (p *patient) positions(ctx context.Context) *doctor.Positions {
	if p.adm == nil || p.ledger == uuid.Nil {
		p.found = append(p.found, doctor.Finding{Level: doctor.Warn, Area: "positions", Text: "not looked at: that needs both Kafka and the ledger"})
		return nil
	}
	ctx, cancel := within(ctx)
	defer cancel()
	s := doctor.Stores{Kafka: p.adm, Q: p.conn, Ledger: p.ledger, Group: p.Config.Kafka.Group, Router: p.router}
	all, err := s.AskPositions(ctx)
	if err != nil {
		p.failed("positions", "", p.explain(err))
		return nil
	}
	return all
}

func (p *patient) lookAtPositions(ctx context.Context) {
	all := p.positions(ctx)
	if all == nil {
		return
	}
	p.add(all.Judge(time.Now(), p.Config.Kafka.TransactionTimeout, p.running))
	ctx, cancel := within(ctx)
	defer cancel()
	backlog, err := doctor.AskBacklog(ctx, p.adm, all.Partitions, doctor.RawRetentions(&p.report, p.router.IsRaw))
	if err != nil {
		p.failed("lag", "", p.explain(err))
		return
	}
	var shortest time.Duration
	if set, err := p.Config.Rules(); err == nil {
		w, _ := set.Windows()
		shortest = w.Value
	}
	p.add(doctor.JudgeBacklog(backlog, shortest))
}

func (p *patient) lookDrained(ctx context.Context) {
	if all := p.positions(ctx); all != nil {
		p.add(all.JudgeDrained())
	}
}

// lookAtLedger looks at what only the ledger's tables tell.
func (p *patient) lookAtLedger(ctx context.Context) {
	if p.ledger == uuid.Nil {
		return
	}
	ctx, cancel := within(ctx)
	defer cancel()
	if m, err := doctor.AskMonths(ctx, p.conn); err != nil {
		p.failed("months", "", err)
	} else {
		p.add(m.Judge(p.Config.Months.Ahead))
	}
	name := p.topicName(ctx)
	if g, err := doctor.AskGaps(ctx, p.conn); err != nil {
		p.failed("gaps", "", err)
	} else {
		p.add(doctor.JudgeGaps(g, name))
	}
	if w, err := doctor.AskWitnesses(ctx, p.conn); err != nil {
		p.failed("witness", "", err)
	} else {
		p.add(w.Judge(name))
	}
}

// topicName tells a topic by its id.
func (p *patient) topicName(ctx context.Context) func(id string) string {
	names := map[string]string{}
	if p.adm != nil {
		var present []string
		for _, t := range p.report.Present {
			present = append(present, t.Name)
		}
		if l, err := topics.FetchLayout(ctx, p.adm, present...); err == nil {
			for _, name := range present {
				if id, ok := l.ID(name); ok {
					names[id.String()] = name
				}
			}
		}
	}
	return func(id string) string {
		if name, ok := names[id]; ok {
			return name
		}
		return id
	}
}

func (p *patient) lookDeep(ctx context.Context) {
	if !p.ask.Deep || p.ledger == uuid.Nil {
		return
	}
	d, err := doctor.AskDeep(ctx, p.conn, p.ask.Say)
	if err != nil {
		p.failed("deep", "", err)
		return
	}
	p.add(d.Judge())
	s, err := doctor.AskSpread(ctx, p.conn)
	if err != nil {
		p.failed("order", "", err)
		return
	}
	p.add(s.Judge())
}
