package processor

import (
	"context"
	"errors"
	"time"

	"dedupledger/ledger"
)

// reasonLedgerRejected is the code of a record the tables cannot take.
const reasonLedgerRejected = "ledger.rejected"

// register takes the batch through the ledger, chunk by chunk in poll order,
// and decides each record. On an error nothing of the batch may be produced:
// it comes again, and redelivery gives the same answer.
func (s *session) register(ctx context.Context, b *batch) error {
	size := min(s.cfg.ChunkRecords, ledger.MaxChunk)
	for from := 0; from < len(b.items); from += size {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.registerChunk(ctx, b, from, min(from+size, len(b.items))); err != nil {
			return err
		}
	}
	return nil
}

// registerChunk halves a chunk that holds data the ledger rejects, until the
// single record is found; that one is registered as INVALID instead. A
// rejected statement has written nothing, so its halves start clean.
func (s *session) registerChunk(ctx context.Context, b *batch, from, to int) error {
	items := b.items[from:to]
	c, parts := b.chunk(from, to)
	began := time.Now()
	s.at("chunk laid out")
	a, err := s.cfg.Ledger.Registrar.Register(ctx, c)
	switch {
	case err == nil:
	case !errors.Is(err, ledger.ErrRejected):
		return err
	case len(items) > 1:
		s.at("chunk halved")
		half := from + len(items)/2
		if err := s.registerChunk(ctx, b, from, half); err != nil {
			return err
		}
		return s.registerChunk(ctx, b, half, to)
	case len(items[0].reg.Keys) > 0 || items[0].reg.SourceService != "":
		s.log.Warn("the ledger rejected a record; it goes to dead-letter", "place", s.placeOf(&items[0]), "error", err)
		s.at("record rejected")
		reg := items[0].reg
		reg.Keys, reg.Reason, reg.SourceService = nil, reasonLedgerRejected, ""
		return s.registerChunk(ctx, b, from, to)
	default:
		return err
	}
	s.at("chunk answered")
	if b.clock.Local.IsZero() {
		b.clock = ledger.Clock{Postgres: a.Now, Local: began}
	}
	for i, p := range parts {
		p.took(c.Advances[i], a.Seqs[i])
	}
	copy(b.results[from:to], a.Results)
	for i := range items {
		it := &items[i]
		it.verdict, it.reason = decide(it.reg, it.res)
		if it.res.Orphan { // closed now, and not again when the batch comes again
			s.m.orphan(it.part.topic)
		}
	}
	s.applyRejections(items)
	return nil
}
