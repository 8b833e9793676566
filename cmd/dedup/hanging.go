package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/internal/app"
	"dedupledger/internal/hanging"
)

func newTopicsHanging(p *program) *cobra.Command {
	var end bool
	var assume string
	c := &cobra.Command{
		Use:   "hanging",
		Short: "transactions of the filter that Kafka has decided on and never ended, and --end them",
		Long: "Looks for transactions of the filter's group that are open on an output or on the group's offsets\n" +
			"although their coordinator has done with them: a broker was stopped while it wrote their ends. Nothing behind them\n" +
			"can be read with read_committed, and the filter waits. With --end each is ended as its\n" +
			"coordinator decided. Never end one with kafka-transactions.sh: that can only abort, and records that\n" +
			"were committed would be lost. The filter may run meanwhile. Of the configuration it needs\n" +
			"kafka.brokers and kafka.group. Exit code 1 when one was found and not ended.",
		Example: "  dedup topics hanging -c /etc/dedup.yaml\n  dedup topics hanging --end -c /etc/dedup.yaml",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			assumed, err := readAssumed(c, end, assume)
			if err != nil {
				return err
			}
			cfg, err := p.load("kafka.brokers")
			if err != nil {
				return err
			}
			o := hanging.Options{
				Group:  cfg.Kafka.Group,
				Client: append(app.KafkaOptions(cfg.Kafka), kgo.ClientID("dedup-ledger-hanging")),
			}
			all, err := hanging.Find(c.Context(), o)
			if err != nil {
				return app.ExplainKafka(cfg.Kafka, err)
			}
			report := hangingReport{Group: o.Group, Transactions: []hangingTransaction{}}
			var failed error
			for i := range all {
				t := hangingOf(&all[i])
				if end && failed == nil {
					if all[i].Decision == hanging.Unknown {
						all[i].Decision = assumed
					}
					failed = hanging.End(c.Context(), o, &all[i])
					t.Ended = failed == nil
				}
				report.Transactions = append(report.Transactions, t)
			}
			if err := p.print(report, report.Print); err != nil {
				return err
			}
			if failed != nil {
				return app.ExplainKafka(cfg.Kafka, failed)
			}
			if n := len(all); n > 0 && !end {
				return fmt.Errorf("hanging transactions: %d; end them as decided: dedup topics hanging --end", n)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&end, "end", false, "write the ends that are missing; takes the right ALTER on the cluster")
	c.Flags().StringVar(&assume, "assume", "", "with --end: `DECISION`, committed or aborted, of those whose decision Kafka does not tell any more")
	return c
}

func readAssumed(c *cobra.Command, end bool, text string) (hanging.Decision, error) {
	switch {
	case text != "" && !end:
		return hanging.Unknown, usage(c, errors.New("--assume goes with --end"))
	case text == "":
		return hanging.Unknown, nil
	case text == hanging.Committed.String():
		return hanging.Committed, nil
	case text == hanging.Aborted.String():
		return hanging.Aborted, nil
	default:
		return hanging.Unknown, usage(c, fmt.Errorf("--assume %q: write %s or %s", text, hanging.Committed, hanging.Aborted))
	}
}

// hangingReport is for machines.
type hangingReport struct {
	Group        string               `json:"group"`
	Transactions []hangingTransaction `json:"transactions"`
}

type hangingTransaction struct {
	ID       string          `json:"transactionalId"`
	Producer int64           `json:"producerId"`
	Epoch    int16           `json:"producerEpoch"`
	Decision string          `json:"decision"`
	Ended    bool            `json:"ended"`
	Places   []hanging.Place `json:"places"`
}

func hangingOf(t *hanging.Transaction) hangingTransaction {
	return hangingTransaction{ID: t.ID, Producer: t.Producer, Epoch: t.Epoch, Decision: t.Decision.String(), Places: t.Places}
}

// Print writes the report for people: a line per transaction, and one per place.
func (r hangingReport) Print(w io.Writer) error {
	var b strings.Builder
	if len(r.Transactions) == 0 {
		fmt.Fprintf(&b, "no transaction of group %s hangs\n", r.Group)
	}
	for _, t := range r.Transactions {
		state := "hangs"
		if t.Ended {
			state = "ended"
		}
		fmt.Fprintf(&b, "%s  %s, producer %d, epoch %d: decided %s\n", state, t.ID, t.Producer, t.Epoch, t.Decision)
		for _, at := range t.Places {
			fmt.Fprintf(&b, "       %s/%d from offset %d\n", at.Topic, at.Partition, at.From)
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}
