package rules

import (
	"strings"
	"sync"
)

// generation is how many scopes one generation of the cache holds.
const generation = 4096

// cache remembers what was found for the scopes met last. Scopes come from
// whoever may write to a raw topic, so it is bounded: two generations, the
// older thrown away when the younger is full. What is still in use has moved
// to the younger by then.
type cache struct {
	mu         sync.RWMutex
	young, old map[string]*Flow
}

// get answers from memory or asks find. Two callers may find the same at once;
// the answers are equal.
func (c *cache) get(scope string, find func(string) *Flow) *Flow {
	c.mu.RLock()
	f, young := c.young[scope]
	old := false
	if !young {
		f, old = c.old[scope]
	}
	c.mu.RUnlock()
	if young {
		return f
	}
	// The caller's text may be part of a record; keeping it would keep all of it.
	scope = strings.Clone(scope)
	if !old {
		f = find(scope)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || len(c.young) >= generation {
		c.young, c.old = make(map[string]*Flow), c.young
	}
	c.young[scope] = f
	return f
}
