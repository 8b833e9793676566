//go:build faultpoints

package processor

// faultPoints is what a program that is built to be broken has more.
type faultPoints struct {
	// Fault is called at each point between two steps with the point's name, from
	// the goroutine that is there: a session's, a learner's, or one of the Kafka
	// client's, where the name begins with "told". It may take its time, or never
	// return. nil: nothing is broken.
	Fault func(point string)
}

func (f faultPoints) ask(point string) {
	if f.Fault != nil {
		f.Fault(point)
	}
}

func (s *session) at(point string)   { s.cfg.ask(point) }
func (c *client) at(point string)    { c.ask(point) }
func (w *learner) at(point string)   { w.s.cfg.ask(point) }
func (p *Processor) at(point string) { p.cfg.ask(point) }
