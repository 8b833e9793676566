package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/internal/app"
	"dedupledger/internal/app/config"
	"dedupledger/topics"
)

func newTopics(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:         "topics check|ensure|hanging|tail|adopt|retire",
		Short:       "check|ensure|hanging|tail|adopt|retire: topics of the filter",
		Example:     "  dedup topics ensure raw-ingest.as2 -c /etc/dedup.yaml",
		Annotations: map[string]string{heading: underRun, opens: opensAll},
		Args:        noArguments,
		RunE:        needsCommand,

		DisableFlagsInUseLine: true,
	}
	c.AddCommand(newTopicsCheck(p), newTopicsEnsure(p), newTopicsHanging(p), newTopicsTail(p), newTopicsAdopt(p), newTopicsRetire(p))
	return c
}

func newTopicsEnsure(p *program) *cobra.Command {
	var dryRun bool
	var scopes []string
	c := &cobra.Command{
		Use:   "ensure [RAW...]",
		Short: "create what is missing, and compare the settings of what is there",
		Long: "Creates the named raw topics, their clean topics, duplicates and dead-letter where they are missing,\n" +
			"and changes no topic that is there: a setting that does not fit is reported with the command that\n" +
			"repairs it. Raw topics that exist already are looked at without being named. Of the configuration\n" +
			"it needs kafka.brokers.",
		Example: "  dedup topics ensure raw-ingest.as2 --dry-run -c /etc/dedup.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := p.load("kafka.brokers")
			if err != nil {
				return err
			}
			router, err := cfg.Router()
			if err != nil {
				return fmt.Errorf("reading the topic names: %w", err)
			}
			client, err := kgo.NewClient(append(app.KafkaOptions(cfg.Kafka), kgo.ClientID("dedup-ledger-topics"))...)
			if err != nil {
				return fmt.Errorf("making the Kafka client: %w", err)
			}
			defer client.Close()
			of, err := readScopes(c, router, scopes)
			if err != nil {
				return err
			}
			plan := planOf(cfg, router, args)
			plan.Scopes, plan.DryRun = of, dryRun
			report, err := topics.Ensure(c.Context(), kadm.NewClient(client), plan)
			err = app.ExplainKafka(cfg.Kafka, err)
			if err != nil && len(report.Created) == 0 {
				return err
			}
			// What was created before an error is told as well.
			printErr := p.print(ensuredOf(&report), report.Print)
			return errors.Join(err, printErr)
		},
	}
	c.Flags().StringSliceVar(&scopes, "scope", nil, "`TENANT:FLOW` whose topics are made too, where topics.duplicates or\ntopics.dead_letter depend on it; TENANT alone where they do not use {flow}")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be created, create nothing")
	return c
}

func newTopicsCheck(p *program) *cobra.Command {
	var scopes []string
	c := &cobra.Command{
		Use:   "check [RAW...]",
		Short: "look as ensure does, create nothing, and fail where something is missing or does not fit",
		Long: "Looks at the raw topics that there are, and at those named, with their outputs. What is missing and\n" +
			"each setting that does not fit is printed with the command that repairs it, and the exit code is 1 then.\n" +
			"Of the configuration it needs kafka.brokers.",
		Example: "  dedup topics check -c /etc/dedup.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := p.load("kafka.brokers")
			if err != nil {
				return err
			}
			router, err := cfg.Router()
			if err != nil {
				return fmt.Errorf("reading the topic names: %w", err)
			}
			of, err := readScopes(c, router, scopes)
			if err != nil {
				return err
			}
			client, err := kgo.NewClient(append(app.KafkaOptions(cfg.Kafka), kgo.ClientID("dedup-ledger-topics"))...)
			if err != nil {
				return fmt.Errorf("making the Kafka client: %w", err)
			}
			defer client.Close()
			plan := planOf(cfg, router, args)
			plan.Scopes, plan.CheckOnly = of, true
			report, err := topics.Ensure(c.Context(), kadm.NewClient(client), plan)
			if err != nil {
				return app.ExplainKafka(cfg.Kafka, err)
			}
			if err := p.print(checkedOf(&report), report.Print); err != nil {
				return err
			}
			if n, m := len(report.Created), len(report.Mismatches); n+m > 0 {
				return fmt.Errorf("%d topics are missing and %d settings do not fit; each repair is printed with it", n, m)
			}
			return nil
		},
	}
	c.Flags().StringSliceVar(&scopes, "scope", nil, "`TENANT:FLOW` whose topics are looked for too, as in ensure")
	return c
}

// topicsChecked is the report of a check for machines.
type topicsChecked struct {
	Missing    []missing  `json:"missing"`
	Present    []topic    `json:"present"`
	Mismatches []mismatch `json:"mismatches"`
}

type missing struct {
	Topic  string `json:"topic"`
	Repair string `json:"repair"`
}

func checkedOf(r *topics.Report) topicsChecked {
	e := ensuredOf(r)
	out := topicsChecked{Missing: []missing{}, Present: e.Present, Mismatches: e.Mismatches}
	for _, t := range r.Created {
		out.Missing = append(out.Missing, missing{t.Name, t.Repair})
	}
	return out
}

// readScopes reads the scopes whose topics are to be made.
func readScopes(c *cobra.Command, router *topics.Router, texts []string) ([]topics.Scope, error) {
	if len(texts) > 0 && !router.PerTenant() && !router.PerFlow() {
		return nil, usage(c, errors.New("--scope: neither topics.duplicates nor topics.dead_letter uses {tenant} or {flow}"))
	}
	all := make([]topics.Scope, 0, len(texts))
	for _, text := range texts {
		whole := text
		if !router.PerFlow() && !strings.Contains(text, ":") {
			whole += ":" + topics.Unknown
		}
		s, err := topics.ParseScope(whole)
		if err != nil {
			return nil, usage(c, fmt.Errorf("--scope %q: %w", text, err))
		}
		all = append(all, s)
	}
	return all, nil
}

func planOf(cfg *config.Config, router *topics.Router, raw []string) topics.Plan {
	return topics.Plan{
		Router: router, Raw: raw, MaxRecordBytes: cfg.Topics.MaxRecordBytes,
		Create: topics.Create(cfg.Topics.Create), Bootstrap: strings.Join(cfg.Kafka.Brokers, ","),
		Principal: cfg.Kafka.Principal(),
	}
}

// ensured is the report for machines.
type ensured struct {
	DryRun     bool       `json:"dryRun"`
	Created    []topic    `json:"created"`
	Present    []topic    `json:"present"`
	Mismatches []mismatch `json:"mismatches"`
}

type topic struct {
	Name        string            `json:"name"`
	Partitions  int32             `json:"partitions"`
	Replication int               `json:"replication"`
	Settings    map[string]string `json:"settings,omitempty"`
}

type mismatch struct {
	Topic  string `json:"topic"`
	Text   string `json:"text"`
	Repair string `json:"repair"`
}

func topicOf(t topics.NewTopic) topic { return topic{t.Name, t.Partitions, t.Replication, t.Settings} }

func ensuredOf(r *topics.Report) ensured {
	e := ensured{DryRun: r.DryRun, Created: []topic{}, Present: []topic{}, Mismatches: []mismatch{}}
	for _, t := range r.Created {
		e.Created = append(e.Created, topicOf(t))
	}
	for _, t := range r.Present {
		e.Present = append(e.Present, topicOf(t))
	}
	for _, m := range r.Mismatches {
		e.Mismatches = append(e.Mismatches, mismatch(m))
	}
	return e
}
