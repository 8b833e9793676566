package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"

	"dedupledger/internal/app"
	"dedupledger/internal/app/config"
)

// allocationRate is one sample in so many bytes: fine enough for a drain that
// allocates gigabytes.
const allocationRate = 64 << 10

// profiled drains with the filter inside this process, where it can be
// profiled. Its CPU and memory then include this program's own few percent.
func (s *stage) profiled(ctx context.Context, set *setting) (f figures, err error) {
	cfg, _, err := config.Load(set.config, nil)
	if err != nil {
		return f, err //nolint:wrapcheck // its lines are complete
	}
	file, err := os.Create(s.o.profile)
	if err != nil {
		return f, fmt.Errorf("making the profile: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	runtime.MemProfileRate = allocationRate
	run, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	var ranErr error
	go func() {
		defer close(ended)
		ranErr = app.Run(run, app.Options{Config: cfg, Version: "bench", Log: app.NewLogger(os.Stderr, cfg.Log)})
	}()
	d := &drain{stage: s, taken: s.committed(set.group), pid: os.Getpid(), ended: ended}
	var startErr error
	samples, err := d.watch(ctx, func() { startErr = pprof.StartCPUProfile(file) })
	pprof.StopCPUProfile()
	allocErr := s.writeAllocations()
	stop()
	<-ended
	if err := errors.Join(err, startErr, allocErr, ranErr); err != nil {
		return f, err
	}
	return figuresOf(samples), nil
}

func (s *stage) writeAllocations() (err error) {
	file, err := os.Create(s.o.profile + ".allocs")
	if err != nil {
		return fmt.Errorf("making the profile of allocations: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.Lookup("allocs").WriteTo(file, 0); err != nil {
		return fmt.Errorf("writing the profile of allocations: %w", err)
	}
	return nil
}
