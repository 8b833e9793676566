package app

import (
	"io"
	"log/slog"

	"dedupledger/internal/app/config"
)

// NewLogger is the program's logger.
func NewLogger(w io.Writer, cfg config.Log) *slog.Logger {
	opts := &slog.HandlerOptions{Level: cfg.Level}
	if cfg.Format == "text" {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}
