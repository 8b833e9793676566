package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/internal/access"
	"dedupledger/internal/app/config"
	"dedupledger/internal/settle"
	"dedupledger/ledger/cold"
)

// settleConns is enough for a command, which does one thing at a time.
const settleConns = 2

// OpenSettle opens Kafka and PostgreSQL for a command that settles partitions.
func OpenSettle(ctx context.Context, cfg *config.Config, log *slog.Logger) (stores *settle.Stores, end func(), err error) {
	router, err := cfg.Router()
	if err != nil {
		return nil, nil, fmt.Errorf("compiling the topic names: %w", err)
	}
	c, err := openLedger(ctx, cfg, "dedup settle", log)
	if err != nil {
		return nil, nil, err
	}
	kafka := append(KafkaOptions(cfg.Kafka), kgo.ClientID("dedup-ledger-settle"))
	cl, err := kgo.NewClient(kafka...)
	if err != nil {
		c.Close()
		return nil, nil, fmt.Errorf("making the Kafka client: %w", err)
	}
	stores = &settle.Stores{Ledger: c, Client: cl, Kafka: kafka, Router: router, Group: cfg.Kafka.Group}
	return stores, func() { cl.Close(); c.Close() }, nil
}

// openLedger opens PostgreSQL for a command.
func openLedger(ctx context.Context, cfg *config.Config, name string, log *slog.Logger) (*cold.Ledger, error) {
	p := cfg.Postgres
	files := func() error {
		f, err := access.PostgresTLS(p.URL.Reveal())
		if err != nil || !f.Enabled {
			return err //nolint:wrapcheck // it names the file
		}
		return f.Check() //nolint:wrapcheck // likewise
	}
	c, err := cold.Open(ctx, cold.Config{
		URL: p.URL.Reveal(), Password: passwordOf(p.Password), Files: files, MaxConns: settleConns,
		ConnectTimeout: p.Pool.ConnectTimeout, TCPUserTimeout: p.Pool.TCPUserTimeout, LockTimeout: p.LockTimeout,
		StatementTimeout: p.StatementTimeout, NoStatementCache: !p.StatementCache, ApplicationName: name, Logger: log,
	})
	if err != nil {
		return nil, ExplainPostgres(p, err)
	}
	return c, nil
}

// ExplainSettle makes a refusal of Kafka or PostgreSQL a sentence.
func ExplainSettle(cfg *config.Config, err error) error {
	if explained := ExplainKafka(cfg.Kafka, err); !errors.Is(explained, err) || explained != err { //nolint:errorlint // is it another one
		return explained
	}
	return ExplainPostgres(cfg.Postgres, err)
}
