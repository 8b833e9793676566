package rules

import "sync"

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
// the answers are equal. It takes bytes, so that a scope that was met before is
// found without making its text.
func (c *cache) get(bytes []byte, find func(string) *Flow) *Flow {
	c.mu.RLock()
	f, young := c.young[string(bytes)]
	old := false
	if !young {
		f, old = c.old[string(bytes)]
	}
	c.mu.RUnlock()
	if young {
		return f
	}
	scope := string(bytes)
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
