package processor

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"dedupledger/ledger"
)

// postpone tries the partitions that wait for the rule again later, without
// keeping those that run from going on.
func (s *session) postpone(err error) {
	s.noteFailure("applying the position rule", err)
	s.answered = s.proc.bell.next()
	wait := s.nextWait()
	for _, p := range s.waiting() {
		p.again = time.Now().Add(wait)
	}
}

// wake lets what was postponed be tried at once if the ledger has answered another
// session meanwhile.
func (s *session) wake() {
	select {
	case <-s.answered:
	default:
		return
	}
	s.answered = nil
	for _, p := range s.parts {
		if p.phase == pending {
			p.again = time.Time{}
		}
	}
}

// afterFailure notes a failure and waits before the next try.
func (s *session) afterFailure(ctx context.Context, doing string, err error) {
	s.noteFailure(doing, err)
	s.backOff(ctx)
}

func (s *session) noteFailure(doing string, err error) {
	switch {
	case errors.Is(err, ledger.ErrClaimLost):
		s.log.Info("the position rule is applied again", "after", doing, "why", err)
	case errors.Is(err, ledger.ErrUnavailable):
		level := slog.LevelDebug
		if s.state.ledgerSilent(err) {
			level = slog.LevelWarn
		}
		s.log.Log(context.Background(), level, "the ledger does not answer; nothing is consumed meanwhile", "doing", doing, "error", err)
	case errors.Is(err, ledger.ErrDenied):
		s.denied = true
		level := slog.LevelDebug
		if s.state.ledgerDenies(err) {
			level = slog.LevelWarn
		}
		s.log.Log(context.Background(), level, "a right on PostgreSQL is missing; nothing is consumed until it is there again", "doing", doing, "error", err)
	case isDenied(err):
		s.log.Log(context.Background(), s.state.levelOf(err), "a right is missing; trying again", "doing", doing, "error", err)
	default:
		s.log.Warn("trying again", "doing", doing, "error", err)
	}
}

func (s *session) ledgerAnswered() {
	if after := s.state.ledgerAnswered(); after > 0 {
		s.log.Info("the ledger answers again", "after", after.Round(time.Millisecond).String())
		s.proc.bell.ring()
	}
}

// backOff waits, doubling, until ctx ends.
func (s *session) backOff(ctx context.Context) {
	s.at("wait begins")
	select {
	case <-ctx.Done():
	case <-s.proc.bell.next():
	case <-time.After(s.nextWait()):
	}
}

// nextWait doubles with each failure in a row, with jitter so that sessions do
// not come back all at once.
func (s *session) nextWait() time.Duration {
	wait := min(retryMin<<min(s.failures, 8), retryMax)
	s.failures++
	return wait/2 + rand.N(wait/2) //nolint:gosec // jitter
}

// fatalOnly keeps the errors that no waiting mends.
func fatalOnly(err error) error {
	if errors.Is(err, ledger.ErrSchema) || errors.Is(err, errRecreated) || errors.Is(err, errProducer) || isFatal(err) {
		return err
	}
	return nil
}
