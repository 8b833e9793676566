package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"dedupledger/internal/app"
	"dedupledger/internal/settle"
	"dedupledger/ledger"
)

// settling is a command that acts on raw partitions: its flags, and what it does
// with the stores once they are open.
type settling struct {
	p     *program
	order settle.Order
}

// flags are those of every command that acts.
func (s *settling) flags(c *cobra.Command) {
	c.Flags().StringVar(&s.order.Reason, "reason", "", "`WHY` it is done; kept in dedup_action")
	c.Flags().BoolVar(&s.order.DryRun, "dry-run", false, "show what would be done, change nothing")
}

// longReason bounds what is kept of a reason.
const longReason = 1000

func (s *settling) run(c *cobra.Command, do func(context.Context, *settle.Stores, settle.Order) (*settle.Report, error)) error {
	if err := checkReason(c, s.order.Reason, s.order.DryRun); err != nil {
		return err
	}
	cfg, err := s.p.load("kafka.brokers", "postgres.url")
	if err != nil {
		return err
	}
	if s.order.Actor, err = s.p.actor(); err != nil {
		return err
	}
	stores, end, err := app.OpenSettle(c.Context(), cfg, s.p.logger(cfg))
	if err != nil {
		return err //nolint:wrapcheck // a sentence already
	}
	defer end()
	report, err := do(c.Context(), stores, s.order)
	if err != nil {
		return app.ExplainSettle(cfg, err) //nolint:wrapcheck // a sentence already
	}
	return s.p.print(report, report.Print)
}

// checkReason wants to know why, unless nothing is changed.
func checkReason(c *cobra.Command, reason string, dryRun bool) error {
	if strings.TrimSpace(reason) == "" && !dryRun {
		return usage(c, errors.New("--reason is missing: say why, as in --reason 'batch 8790 is corrupt on disk'; it is kept with the act"))
	}
	if len(reason) > longReason {
		return usage(c, fmt.Errorf("--reason has %d bytes: write at most %d", len(reason), longReason))
	}
	return nil
}

// actor is who acts: DEDUP_ACTOR, or the user of the operating system.
func (p *program) actor() (string, error) {
	if name, _ := p.lookup("DEDUP_ACTOR"); strings.TrimSpace(name) != "" {
		return name, nil
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username, nil
	}
	if uid := os.Getuid(); uid >= 0 {
		return "uid " + strconv.Itoa(uid), nil
	}
	return "", errors.New("who acts cannot be told: set DEDUP_ACTOR to your name")
}

func newSkip(p *program) *cobra.Command {
	s := &settling{p: p}
	var to int64
	c := &cobra.Command{
		Use:   "skip RAW/PARTITION --to OFFSET",
		Short: "go on behind records that cannot be read (a recorded gap)",
		Long: "The partition goes on at OFFSET. What lies before it and is not committed gets no output, ever: it is\n" +
			"recorded in dedup_gap, and the act in dedup_action. A message that was decided there and never\n" +
			"committed is listed: its next copy is NEW. The group must have no member, or the filter hold the\n" +
			"partition. The group's own offset is left alone. Of the configuration it needs kafka.brokers,\n" +
			"kafka.group and postgres.url.",
		Example:     "  dedup skip raw-ingest.as2/3 --to 8812 --reason 'batch 8790 is corrupt on disk' -c /etc/dedup.yaml",
		Annotations: map[string]string{heading: underAct, opens: opensAll},
		Args:        arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			topic, partition, err := partitionOf(args[0])
			switch {
			case err != nil:
				return usage(c, err)
			case !c.Flags().Changed("to"):
				return usage(c, errors.New("--to is missing: the offset to go on at, as in --to 8812"))
			case to < 0:
				return usage(c, fmt.Errorf("--to %d: write an offset, 0 or more", to))
			}
			return s.run(c, func(ctx context.Context, st *settle.Stores, o settle.Order) (*settle.Report, error) {
				return st.Skip(ctx, o, topic, partition, to)
			})
		},
	}
	c.Flags().Int64Var(&to, "to", 0, "go on at this `OFFSET`")
	s.flags(c)
	return c
}

func newRepair(p *program) *cobra.Command {
	s := &settling{p: p}
	var assume string
	var terms settle.Terms
	c := &cobra.Command{
		Use:   "repair [RAW[/PARTITION]]",
		Short: "settle a held partition by the operator's word",
		Long: "Settles partitions that are held for outputs_gone: what must be learned from the outputs was deleted by\n" +
			"retention. --assume is your word on what was decided and whose output nobody can find any more;\n" +
			"--accept-gap goes on without what cannot be had any more. The filter learns what is left of the\n" +
			"outputs and goes on by itself, within 10 seconds or at its start. Without an argument it looks at all\n" +
			"partitions. Start with --dry-run. Of the configuration it needs kafka.brokers, kafka.group, topics and\n" +
			"postgres.url.",
		Example:     "  dedup repair --dry-run -c /etc/dedup.yaml\n  dedup repair raw-ingest.as2/3 --assume committed --reason 'clean.as2 was checked: INC-71' -c /etc/dedup.yaml",
		Annotations: map[string]string{heading: underKeep, opens: opensAll},
		Args:        arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			topic, partition := "", int32(-1)
			if len(args) > 0 {
				if topic = args[0]; strings.Contains(topic, "/") {
					if topic, partition, err = partitionOf(topic); err != nil {
						return usage(c, err)
					}
				}
			}
			if terms.Assume, err = wordOf(assume); err != nil {
				return usage(c, err)
			}
			return s.run(c, func(ctx context.Context, st *settle.Stores, o settle.Order) (*settle.Report, error) {
				return st.Repair(ctx, o, topic, partition, terms)
			})
		},
	}
	assumeFlag(c, &assume)
	c.Flags().BoolVar(&terms.AcceptGap, "accept-gap", false, "go on without what cannot be had any more")
	s.flags(c)
	return c
}

func newTopicsAdopt(p *program) *cobra.Command {
	s := &settling{p: p}
	c := &cobra.Command{
		Use:   "adopt RAW",
		Short: "take the partitions of a raw topic over from a group that is empty",
		Long: "After kafka.group was renamed: the partitions of the raw topic belong to the configured group from now\n" +
			"on. Refused while the group that had them has members. Of the configuration it needs kafka.brokers,\n" +
			"kafka.group (the new one) and postgres.url.",
		Example: "  dedup topics adopt raw-ingest.as2 --reason 'group renamed' -c /etc/dedup.yaml",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.run(c, func(ctx context.Context, st *settle.Stores, o settle.Order) (*settle.Report, error) {
				return st.Adopt(ctx, o, args[0])
			})
		},
	}
	s.flags(c)
	return c
}

func newTopicsRetire(p *program) *cobra.Command {
	s := &settling{p: p}
	var assume string
	c := &cobra.Command{
		Use:   "retire RAW@TOPIC-ID",
		Short: "settle a raw topic that was deleted, or deleted and created again",
		Long: "The topic of that id is gone. What was decided there and is not committed is recorded as a gap and\n" +
			"listed: its next copy is NEW. What is committed stays decided for good. Refused while a topic of that id\n" +
			"is there. The ids stand in dedup_position.topic_id. Of the configuration it needs kafka.brokers and\n" +
			"postgres.url.",
		Example: "  dedup topics retire raw-ingest.as2@5f0c2b8e-3f0a-4b53-9c1e-0d7a64c1f2aa --reason 'moved to the new cluster' -c /etc/dedup.yaml",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			topic, text, found := strings.Cut(args[0], "@")
			id, err := uuid.Parse(text)
			if !found || topic == "" || err != nil {
				return usage(c, fmt.Errorf("%q: write RAW@TOPIC-ID, the id as dedup_position.topic_id has it", args[0]))
			}
			word, err := wordOf(assume)
			if err != nil {
				return usage(c, err)
			}
			return s.run(c, func(ctx context.Context, st *settle.Stores, o settle.Order) (*settle.Report, error) {
				return st.Retire(ctx, o, topic, ledger.TopicID(id), word)
			})
		},
	}
	assumeFlag(c, &assume)
	s.flags(c)
	return c
}

func assumeFlag(c *cobra.Command, assume *string) {
	words := []string{string(settle.Committed), string(settle.Aborted)}
	c.Flags().StringVar(assume, "assume", "", "your `WORD`, committed or aborted, on what was decided and whose outputs are gone")
	_ = c.RegisterFlagCompletionFunc("assume", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there
}

func wordOf(text string) (settle.Word, error) {
	switch w := settle.Word(text); w {
	case "", settle.Committed, settle.Aborted:
		return w, nil
	default:
		return "", fmt.Errorf("--assume %q: write committed or aborted", text)
	}
}

// partitionOf reads RAW/PARTITION.
func partitionOf(text string) (topic string, partition int32, err error) {
	topic, number, found := strings.Cut(text, "/")
	n, err := strconv.ParseInt(number, 10, 32)
	if !found || topic == "" || err != nil || n < 0 {
		return "", 0, fmt.Errorf("%q: write RAW/PARTITION, as in raw-ingest.as2/3", text)
	}
	return topic, int32(n), nil
}
