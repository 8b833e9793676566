package demo

import (
	"context"
	"time"
)

// askEvery is the pause between two questions.
const askEvery = 5 * time.Millisecond

// await asks until the answer is yes or an error. When ctx ends first its cause
// is returned.
func await(ctx context.Context, ask func() (bool, error)) error {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		yes, err := ask()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
