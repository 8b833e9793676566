package main

// control is one way to break the product.
type control struct {
	name    string
	file    string // relative to the module
	changes []change
	test    string // of go test -run: the test that catches it
	in      string // package of the test
	says    string // regular expression: what the test says then
}

// change replaces a text that is in the file exactly once.
type change struct{ old, new string }

const (
	integration = "./integration"
	unit        = "./processor"
	cold        = "./ledger/cold"
	rulesOf     = "./internal/rules"
	crash       = "./integration/crash"
	everyStep   = "TestCrashAtEveryStep"
)

var controls = []control{
	{
		name: "a transaction begun behind one of ours that hangs",
		file: "processor/loop.go",
		changes: []change{{
			`	ended, err := s.awaitEnded(ctx, placesOf(outs))
`, `	ended, err := ctx != nil, error(nil)
`,
		}},
		in: unit, test: "TestNothingIsBegunBehindAHangingTransaction", says: `while it runs`,
	},
	{
		name: "a partition started behind a transaction of ours that hangs",
		file: "processor/assign.go",
		changes: []change{{
			`!stable || anyOf(open, s.outputPlaces(p)) {`, `!stable || len(open) < 0 {`,
		}},
		in: unit, test: "TestNothingIsBegunBehindAHangingTransaction", says: `while it runs|at the start`,
	},
	{
		name: "a topic that the client has the old id of is held as unreadable",
		file: "processor/unreadable.go",
		changes: []change{{
			`if p.unread.held && errors.Is(err, kerr.UnknownTopicID) {`, `if p.unread.held && errors.Is(err, kerr.UnknownTopicID) && p == nil {`,
		}},
		in: unit, test: "TestTopicMadeAgainBeforeItsFirstPartition", says: `outputs did not come`,
	},
	{
		name: "what is only observed is learned as accepted, for it is in clean",
		file: "processor/learn.go",
		changes: []change{{
			`	o.SourceService = w.s.cfg.Input.SourceService(rec.Headers)
`, `	if o.ID != uuid.Nil && o.Key != "" {
		o.Verdict = ledger.New
	}
	o.SourceService = w.s.cfg.Input.SourceService(rec.Headers)
`,
		}},
		in: unit, test: "TestObservedIsNoNewWhenItIsLearned", says: `expected: |Not equal`,
	},
	{
		name: "a record that clean refused sent to clean again, for its flow only observes",
		file: "processor/decide.go",
		changes: []change{{
			`v != ledger.New && reason != reasonTooLarge && reason != reasonOutputRejected`, `v != ledger.New && reason != reasonTooLarge`,
		}},
		in: unit, test: "TestObservedThatCleanRefuses", says: `outputs did not come`,
	},
	{
		name: "a ledger with keys of nobody knows which rules taken for an empty one",
		file: "ledger/cold/rules.go",
		changes: []change{{
			`($3 or not exists (select from dedup_position) and not exists (select from dedup_scope))`, `($3 or not $3)`,
		}},
		in: cold, test: "TestFirstRules", says: `its keys were made by others`,
	},
	{
		name: "rules made active over those that somebody else has activated meanwhile",
		file: "ledger/cold/rules.go",
		changes: []change{{
			`where coalesce(fingerprint, '') = $1`, `where $1 = $1`,
		}},
		in: cold, test: "TestActivateRules", says: `ErrRulesChanged|other rules|Target error`,
	},
	{
		name: "a setting that makes keys left out of the fingerprint",
		file: "internal/rules/making.go",
		changes: []change{{
			`"namespace", "lenient", "with_date",`, `"namespace", "lenient",`,
		}},
		in: rulesOf, test: "TestFingerprintIsOfWhatMakesKeys", says: `with_date`,
	},
	{
		name:    "the primary key registered as an alias, too",
		file:    "internal/rules/key.go",
		changes: []change{{`if key != primary && !slices.Contains`, `if !slices.Contains`}},
		in:      rulesOf, test: "TestAliases", says: `the primary is no alias|dated, as the primary is`,
	},
	{
		name:    "one key registered as two aliases",
		file:    "internal/rules/key.go",
		changes: []change{{`!slices.Contains(keys, key)`, `!slices.Contains(keys[:0], key)`}},
		in:      rulesOf, test: "TestAliases", says: `one key of two`,
	},
	{
		name:    "aliases without the date that the key has",
		file:    "internal/rules/key.go",
		changes: []change{{`if dated { // or`, `if dated && f == nil { // or`}},
		in:      rulesOf, test: "TestAliases", says: `dated, as the primary is`,
	},
	{
		name:    "the chain of a flow made without the options of its rules",
		file:    "internal/rules/set.go",
		changes: []change{{`f.chain, _ = f.with.NewChain(`, `f.chain, _ = msgkey.NewChain(`}},
		in:      rulesOf, test: "TestEachOptionMakesKeys", says: `Not equal`,
	},
	{
		name:    "the chains of aliases made without the options of their rules",
		file:    "internal/rules/set.go",
		changes: []change{{`alone, _ := f.with.NewChain(`, `alone, _ := msgkey.NewChain(`}},
		in:      rulesOf, test: "TestEachOptionMakesKeys", says: `Not equal`,
	},
	{
		name:    "a chain emptied by an earlier rule's list of no pointers",
		file:    "internal/rules/set.go",
		changes: []change{{`problems = append(problems, emptied(s.rules)...)`, `emptied(s.rules)`}},
		in:      rulesOf, test: "TestEveryChainIsWhole", says: `needs at least one`,
	},
	{
		name: "a filter that runs on when other rules are made active",
		file: "internal/app/rules.go",
		changes: []change{{
			`			deactivated()
			return
`, `			return
`,
		}},
		in: integration, test: "TestTwoSetsOfRules", says: `/readyz does not say|not 2 partitions`,
	},
	{
		name: "hashes of two modes compared",
		file: "ledger/verdict.go",
		changes: []change{{
			`	if e.HashMode != r.HashMode {`, `	if e.HashMode == "" && e.HashMode != r.HashMode {`,
		}},
		in: rulesOf, test: "TestHash", says: `expected: |Not equal`,
	},
	{
		name: "mode: observe taken as enforce",
		file: "processor/decide.go",
		changes: []change{{
			`return v != ledger.New && reason`, `return v == ledger.New && reason`,
		}},
		in: unit, test: "TestObserve", says: `Not equal`,
	},
	{
		name: "an orphan decides like any row",
		file: "migrations/sql/00011_aliases.sql",
		changes: []change{{
			`            continue when not exists (
                select from dedup_gap g`,
			`            continue when true or not exists (
                select from dedup_gap g`,
		}},
		in: cold, test: "TestOrphan", says: `actual +: .*"DRIFT", "DRIFT", "SEEN", "SEEN"`,
	},
	{
		name: "rows below the committed end treated as orphans",
		file: "migrations/sql/00011_aliases.sql",
		changes: []change{{
			`                  and (g.from_epoch, g.from_offset) <= (v_row.epoch, v_row."offset")
`, ``,
		}},
		in: cold, test: "TestOrphan", says: `actual +: .*"NEW", "SEEN", "NEW", "SEEN"`,
	},
	{
		name: "every range between outputs taken for a gap",
		file: "processor/hole.go",
		changes: []change{{
			`	there, err := w.raw.in(ctx, from.Offset, to.Offset)
	if err`,
			`	there, err := w.raw.in(ctx, from.Offset, to.Offset)
	there = true
	if err`,
		}},
		in: integration, test: "TestMarkersAreNoGap", says: `gaps`,
	},
	{
		name: "an act that does not look whether somebody took the partition",
		file: "ledger/cold/settle.go",
		changes: []change{{
			`where p.topic_id = $1 and p.partition = $2 and p.claim = $3 and (not $4`,
			`where p.topic_id = $1 and p.partition = $2 and $3::uuid is not null and (not $4`,
		}},
		in: cold, test: "TestSettle", says: `ErrClaimLost|claim`,
	},
	{
		name: `the origin rule replaced by a "seen" flag`,
		file: "processor/decide.go",
		changes: []change{{
			`	return ledger.JudgeResult(r, res)`,
			`	v, reason := ledger.JudgeResult(r, res)
	if v == ledger.New && !res.Inserted {
		v = ledger.Seen
	}
	return v, reason`,
		}},
		in: integration, test: "TestInABatch/killed,_registered", says: `law 3: no copy of`,
	},
	{
		name: "offsets committed outside the transaction",
		file: "processor/session.go",
		changes: []change{
			{
				`	first := kgo.AbortingFirstErrPromise(c.gts.Client())`,
				`	outside := kgo.PreCommitFnContext(bg, func(req *kmsg.OffsetCommitRequest) error {
		for _, t := range req.Topics {
			for i := range t.Partitions {
				if m, ok := marks[place{t.Topic, t.Partitions[i].Partition}]; ok {
					p := &t.Partitions[i]
					p.Offset, p.LeaderEpoch, p.Metadata = m.end.Offset, m.end.Epoch, kmsg.StringPtr(m.metadata)
				}
			}
		}
		return nil
	})
	c.gts.Client().CommitOffsetsSync(outside, c.gts.Client().UncommittedOffsets(), nil)
	first := kgo.AbortingFirstErrPromise(c.gts.Client())`,
			},
			{`stamp(req, marks)`, `stamp(req, nil)`},
		},
		in: integration, test: "TestInABatch/killed,_offsets_in", says: `law 1: .* has 0 outputs`,
	},
	{
		name:    "look-back without the scope lock",
		file:    "migrations/sql/00011_aliases.sql",
		changes: []change{{`for no key update /* the scope lock */`, ``}},
		in:      cold, test: "TestRacingWriters", says: `are both NEW|was NEW and is \w+`,
	},
	{
		name: "a fact in Redis trusted for a verdict",
		file: "ledger/tiers.go",
		changes: []change{{
			`	t.cfg.Observe(TierCold, time.Since(start), err)
	return answer, err`,
			`	t.cfg.Observe(TierCold, time.Since(start), err)
	if err == nil && t.cfg.Hot != nil {
		facts := FactsOf(chunk.Registrations, answer.Results)
		told, _ := t.cfg.Hot.Remember(ctx, Clock{Postgres: answer.Now, Local: start}, facts)
		for i := range answer.Results {
			for _, w := range told {
				if r := &answer.Results[i]; r.Entry.Origin == w.Fact.Origin {
					r.Entry.Origin, r.Entry.FirstSeenAt, r.Inserted = w.Was, w.WasSeen, false
				}
			}
		}
	}
	return answer, err`,
		}},
		in: integration, test: "TestRowDeletedWhileItsFactLives", says: `one key is in clean twice`,
	},
	{
		name:    "(false, nil) is an abort",
		file:    "processor/loop.go",
		changes: []change{{`		s.resync("a transaction did not report its commit")`, ``}},
		in:      integration, test: "TestCommitAnsweredWithAnError", says: `law 1: .* has 2 outputs`,
	},
	{
		name: "the group is asked for the membership before the claim alone",
		file: "processor/claim.go",
		changes: []change{{
			`	if ours, err := s.member(ctx, claimed); !ours {
		return nil, errors.Join(err, failed)
	}
`, ``,
		}},
		in: unit, test: "TestAStaleSessionRegistersNothing", says: `registrations of the record`,
	},
	{
		name:    "the group's offset is read before the claim alone",
		file:    "processor/claim.go",
		changes: []change{{`if g, stable := now[p]; !stable || g != before[p] {`, `if g, stable := now[p]; !stable && g != before[p] {`}},
		in:      unit, test: "TestTheGroupsOffsetIsReadBehindTheClaim", says: `although the offset is about to change`,
	},
	{
		name:    "the claim not checked",
		file:    "migrations/sql/00011_aliases.sql",
		changes: []change{{`p.claim <> i.claim or p.timeline`, `p.timeline`}},
		in:      integration, test: "TestZombieBehindItsPoll", says: `the copy after the window|the answer to the registration that came late`,
	},
	{
		name:    "D and seq not compared with the marker",
		file:    "processor/position.go",
		changes: []change{{`if row.D.Less(g.at) || row.Seq < g.seq {`, `if false {`}},
		in:      integration, test: "TestPostgresPutBackBetween/stopped", says: `law 2: .* are both in clean`,
	},
	{
		name:    "an offset that another tool set is obeyed",
		file:    "processor/position.go",
		changes: []change{{`return start{kind: startVerify, from: row.W}`, `return start{kind: startAt, at: g.at}`}},
		in:      integration, test: "TestResetAfterStop/beyond", says: `law 1: .* has 0 outputs`,
	},
	{
		name: "W written before the commit",
		file: "processor/partition.go",
		changes: []change{{
			`NewD: p.d.Max(newD).Max(p.w), W: p.w, Outputs: p.outs,`,
			`NewD: p.d.Max(newD).Max(p.w), W: p.d.Max(newD).Max(p.w), Outputs: p.outs,`,
		}},
		in: crash, test: everyStep, says: `lost: .* without an output`,
	},
	{
		name: "a batch collapsed by key before it is decided",
		file: "processor/register.go",
		changes: []change{{
			`		it.verdict, it.reason = decide(it.reg, it.res)
`,
			`		it.verdict, it.reason = decide(it.reg, it.res)
		for j := range i {
			if was := &items[j]; len(it.reg.Keys) > 0 && len(was.reg.Keys) > 0 && was.reg.Keys[0] == it.reg.Keys[0] {
				it.verdict, it.reason = was.verdict, was.reason
			}
		}
`,
		}},
		in: crash, test: everyStep, says: `doubled: law 2`,
	},
	{
		name: "a record that the ledger rejects is skipped",
		file: "processor/loop.go",
		changes: []change{{
			`	o, dataErr, err := s.kafka.transact(work, outs, marks)
`,
			`	var some []*kgo.Record
	for i := range outs {
		if b.items[i].reason != reasonLedgerRejected {
			some = append(some, outs[i])
		}
	}
	o, dataErr, err := s.kafka.transact(work, some, marks)
`,
		}},
		in: crash, test: everyStep, says: `lost: .* without an output`,
	},
	{
		name: "rows are learned by raw records, whatever their outputs tell",
		file: "processor/learn.go",
		changes: []change{
			{`		Verdict: o.Verdict,
`, `		Verdict: verdict,
`},
			{`	l := ledger.Learned{
`, `	verdict := o.Verdict
	if verdict != ledger.Invalid {
		verdict = ledger.New
	}
	l := ledger.Learned{
`},
		},
		in: crash, test: everyStep, says: `wrong: accounts`,
	},
	{
		name:    "the producer id is asked for with the first need",
		file:    "processor/session.go",
		changes: []change{{`if _, _, err := gts.Client().ProducerID(ctx); err != nil {`, `if err := ctx.Err(); err != nil {`}},
		in:      unit, test: "TestASessionWithoutAPartitionEndsItsPredecessorsTransaction", says: `outputs did not come`,
	},
	{
		name: "no row before the first poll",
		file: "processor/assign.go",
		changes: []change{
			{`	made, err := s.cfg.Ledger.Positions.OpenPosition(ctx, key, p.claim, at, outs)
`, `	claim, made, err := p.claim, true, error(nil)
	s.cfg.Ledger.Registrar = &rowWithChunk{s.cfg.Ledger.Registrar, func() error {
		_, err := s.cfg.Ledger.Positions.OpenPosition(ctx, key, claim, at, outs)
		return err
	}}
`},
			{`const (
	heldWait `, `type rowWithChunk struct {
	Registrar
	open func() error
}

func (r *rowWithChunk) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	a, err := r.Registrar.Register(ctx, c)
	if errors.Is(err, ledger.ErrClaimLost) && r.open() == nil {
		return r.Registrar.Register(ctx, c)
	}
	return a, err
}

const (
	heldWait `},
		},
		in: unit, test: "TestTheFirstStartIsWrittenDownBeforeTheFirstPoll", says: `Messages: +\t(gaps|outputs did not come)`,
	},
	{
		name: "a partition that has no row is taken for new",
		file: "processor/position.go",
		changes: []change{{
			`return start{kind: openLearn, at: g.at, seq: g.seq}`,
			`return start{kind: openAt, at: g.at}`,
		}},
		in: unit, test: "TestLedgerBehind/everything_forgotten=true", says: `actual +: .*"clean\.as2 a":2`,
	},
	{
		name: "no position check at assignment",
		file: "processor/position.go",
		changes: []change{{
			`	if row == nil {
		return decideOpen(g)
	}
`,
			`	if row == nil {
		return decideOpen(g)
	}
	if g.found {
		return start{kind: startAt, at: g.at}
	}
`,
		}},
		in: crash, test: everyStep, says: `doubled: law|wrong: accounts|lost: .* without an output`,
	},
	{
		name: "a fact that is missing in Redis trusted",
		file: "ledger/tiers.go",
		changes: []change{{
			`	t.cfg.Observe(TierCold, time.Since(start), err)
	return answer, err`,
			`	t.cfg.Observe(TierCold, time.Since(start), err)
	if hot, ok := t.cfg.Hot.(interface {
		Get(ctx context.Context, scope, key string) (Fact, bool, error)
	}); ok && err == nil {
		for i := range answer.Results {
			if r := &answer.Results[i]; r.Entry.Key != "" {
				if _, found, err := hot.Get(ctx, r.Entry.Scope, r.Entry.Key); err == nil && !found {
					r.Entry.Origin = chunk.Registrations[i].Origin
				}
			}
		}
	}
	return answer, err`,
		}},
		in: crash, test: everyStep, says: `doubled: law 2`,
	},
	{
		name: "Kafka's password read once",
		file: "internal/app/access.go",
		changes: []change{{
			`	return func(context.Context) (scram.Auth, error) {
		password, err := s.Password.Reveal()
`,
			`	password, err := s.Password.Reveal()
	return func(context.Context) (scram.Auth, error) {
`,
		}},
		in: integration, test: "TestSecretsRotated", says: `/readyz does not say "password file`,
	},
	{
		name:    "PostgreSQL's certificates read once",
		file:    "ledger/cold/open.go",
		changes: []change{{`	conn.TLSConfig, conn.Fallbacks = now.TLSConfig, now.Fallbacks`, `	_ = now`}},
		in:      integration, test: "TestSecretsRotated", says: `outputs still missing|/readyz is not 200`,
	},
	{
		name:    "connections to Kafka live for ever",
		file:    "internal/access/lifetime.go",
		changes: []change{{`if age > 2*a.limit || age > a.limit && a.awaited == 0 {`, `if false {`}},
		in:      integration, test: "TestSecretsRotated", says: `/readyz does not say "Kafka refuses the login`,
	},
	{
		name:    "an output whose name the raw pattern matches let through",
		file:    "topics/routing.go",
		changes: []change{{`	if name, both := common(results, p.prog); both {`, `	if name, both := common(results, p.prog); false && both {`}},
		in:      "./topics", test: "TestNoOutputIsRaw", says: `Should be false`,
	},
	{
		name:    "the lock of a slot not taken",
		file:    "ledger/cold/tenure.go",
		changes: []change{{`select pg_try_advisory_lock($1, $2)`, `select $1::int is not null and $2::int is not null`}},
		in:      cold, test: "TestSlotsAtOnce", says: `map\[int\]int\{0:6\}`,
	},
	{
		name: "a raw topic whose clean topic is missing consumed",
		file: "processor/output.go",
		changes: []change{{`			faults[missing.Raw] = err
		case errors.As(err, &route):`, `		case errors.As(err, &route):`}},
		in: integration, test: "TestOutputTopicMissing", says: `/readyz does not say`,
	},
	{
		name: "a right that PostgreSQL denies ends the filter",
		file: "ledger/cold/errors.go",
		changes: []change{{`	case codeNotPermitted:
		return ledger.ErrDenied
`, ``}},
		in: integration, test: "TestPostgresRightTakenAwayAndGranted", says: `the filter ended`,
	},
	{
		name: "rights on the topics of tenants not looked at",
		file: "internal/app/rights.go",
		changes: []change{{`	return append(layout.Lacks(need), r.onScopes(all, names)...), nil`, `	r.onScopes(all, names)
	return layout.Lacks(need), nil`}},
		in: integration, test: "TestRightOnATenantsTopic/WRITE", says: `/readyz does not say "lacks WRITE`,
	},
	{
		name:    "a record for a topic that is hidden waits for nothing",
		file:    "processor/output.go",
		changes: []change{{`	s.holdDenied(b, outs, s.hidden(unknown))`, `	_ = s.hidden(unknown)`}},
		in:      integration, test: "TestRightOnATenantsTopic/all", says: `/readyz does not say .*rights`,
	},
	{
		name:    "the rights of the slot of the start looked after",
		file:    "internal/app/slot.go",
		changes: []change{{`		s.number.Store(int64(slot))`, ``}},
		in:      integration, test: "TestRightsOfTheNextSlot", says: `/readyz does not say "lacks WRITE`,
	},
	{
		name: "a repeat's alias registered although one of its keys is another's",
		file: "migrations/sql/00011_aliases.sql",
		changes: []change{{
			`        from (select unnest(k_line) i, unnest(k_h) h, unnest(k_key) key, unnest(v_claim) claim) x
        where x.claim;`,
			`        from (select unnest(k_line) i, unnest(k_h) h, unnest(k_key) key, unnest(k_name) n) x
        where v_met[x.n] = 0;`,
		}},
		in: cold, test: "TestAliases", says: `Not equal|accepted twice`,
	},
	{
		name:    "aliases not learned",
		file:    "processor/learn.go",
		changes: []change{{`l.Aliases, l.Matched = o.Aliases, o.Matched`, `l.Matched = o.Matched`}},
		in:      unit, test: "TestAliasesGoThrough", says: `outputs did not come|Not equal|expected: `,
	},
	{
		name:    "an alias without its key passed over by doctor",
		file:    "internal/doctor/deep.go",
		changes: []change{{`where p.alias_of is not null and not exists (`, `where p.alias_of = '' and not exists (`}},
		in:      integration, test: "TestDoctorTellsLedgerAndRedis", says: `is the alias of a key|hdr:alone`,
	},
	{
		name:    "an import by other rules than the active ones",
		file:    "internal/app/import.go",
		changes: []change{{`if why := r.making.refused(&active); why != "" {`, `if why := r.making.refused(&active); why == "never" {`}},
		in:      integration, test: "TestImportByTheActiveRules", says: `Not equal`,
	},
	{
		name: "an import on an empty ledger leaves the rules unset",
		file: "internal/app/import.go",
		changes: []change{{`		if r.dryRun {
			return nil`, `		if r.dryRun || active.Empty {
			return nil`}},
		in: integration, test: "TestImportByTheActiveRules", says: `Should NOT be empty`,
	},
	{
		name:    "an imported window counts from the import",
		file:    "migrations/sql/00012_import.sql",
		changes: []change{{`x.first, x.first, x.first + make_interval(secs => x.win), 3,`, `x.first, x.first, clock_timestamp() + make_interval(secs => x.win), 3,`}},
		in:      cold, test: "TestImport", says: `Not equal`,
	},
	{
		name:    "an import sets the gate",
		file:    "migrations/sql/00012_import.sql",
		changes: []change{{`insert into dedup_scope (scope) select s from unnest(v_scopes) s`, `insert into dedup_scope (scope, gate) select s, 2 from unnest(v_scopes) s`}},
		in:      cold, test: "TestImport", says: `t1:as2 5184000 2`,
	},
	{
		name:    "an import does not lengthen the look-back",
		file:    "migrations/sql/00012_import.sql",
		changes: []change{{`where s.scope = x.scope and s.max_window < x.win;`, `where s.scope = x.scope and s.max_window < x.win and false;`}},
		in:      cold, test: "TestImport", says: `t1:as2 0 -`,
	},
	{
		name:    "an import brings back what was closed here",
		file:    "migrations/sql/00012_import.sql",
		changes: []change{{` or d.first_seen_at >= x.first)`, `)`}},
		in:      cold, test: "TestWhatAnImportLeavesOut", says: `Not equal`,
	},
	{
		name:    "an import takes no scope lock",
		file:    "migrations/sql/00012_import.sql",
		changes: []change{{`              for no key update /* the scope lock */) x;`, `              ) x;`}},
		in:      cold, test: "TestImportBesideTheFilter", says: `Not equal`,
	},
	{
		name:    "a dry import writes",
		file:    "internal/importer/run.go",
		changes: []change{{`DryRun: w.DryRun, Lines: c.lines`, `DryRun: false, Lines: c.lines`}},
		in:      "./internal/importer", test: "TestADryRunCountsAsTheImport", says: `should have`,
	},
	{
		name:    "a dry import forgets the lines before",
		file:    "internal/importer/run.go",
		changes: []change{{`			s = w.repeats.look(&c.lines[i], s)`, `			_ = w.repeats.look(&c.lines[i], s)`}},
		in:      "./internal/importer", test: "TestADryRunCountsAsTheImport", says: `Not equal`,
	},
}
