package main

import (
	"fmt"
	"strings"
)

// figures are what one phase came to. CPU and memory are zero where the phase
// is no process of its own.
type figures struct {
	Messages  int64   `json:"messages"` // in the measured time
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"messages_per_second"`
	CPU       float64 `json:"cpu_us_per_message,omitempty"`
	Peak      float64 `json:"rss_peak_mb,omitempty"`
	// Resident is at 25, 50, 75 and 100 % of the messages, in MB.
	Resident []float64 `json:"rss_mb,omitempty"`
	// Outage is set by the phase of that name, whose PerSecond is the normal rate.
	Outage *outageFigures `json:"outage,omitempty"`
}

const mb = 1 << 20

// figuresOf takes the time from the first sample to the last: joining the group
// and opening connections happen once and are no speed.
func figuresOf(samples []sample) figures {
	first, last := samples[0], samples[len(samples)-1]
	f := figures{Messages: last.done - first.done, Seconds: last.at.Sub(first.at).Seconds(), Peak: float64(last.peak) / mb}
	if f.Messages > 0 && f.Seconds > 0 {
		f.PerSecond = float64(f.Messages) / f.Seconds
		f.CPU = float64((last.cpu - first.cpu).Microseconds()) / float64(f.Messages)
	}
	for quarter := int64(1); quarter <= 4; quarter++ {
		for _, s := range samples {
			if s.done*4 >= last.done*quarter {
				f.Resident = append(f.Resident, float64(s.rss)/mb)
				break
			}
		}
	}
	return f
}

func (f figures) details() string {
	if f.Outage != nil {
		return fmt.Sprintf("%s; %.0f MB RSS at most", f.Outage.text(), f.Peak)
	}
	if f.Peak == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f µs CPU/msg  %.0f MB RSS at most, %s at 25/50/75/100 %%", f.CPU, f.Peak, f.resident())
}

func (f figures) resident() string {
	parts := make([]string, len(f.Resident))
	for i, r := range f.Resident {
		parts[i] = fmt.Sprintf("%.0f", r)
	}
	return strings.Join(parts, "/")
}
