package postgres

import (
	"maps"
	"sync"
)

// maxCached is how many names are cached. Beyond it the cache is emptied.
const maxCached = 20_000

// cache caches the ids of names that are never removed from the database.
type cache[Name comparable] struct {
	mu  sync.Mutex
	ids map[Name]int64
}

// get returns the ids of names. find looks up missing ones and adds new ones; it may omit names. It is called a second time for
// names that another gateway adds at the same time.
func (c *cache[Name]) get(names []Name, find func(missing []Name) (map[Name]int64, error)) (map[Name]int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ids) > maxCached || c.ids == nil {
		c.ids = map[Name]int64{}
	}
	ids := make(map[Name]int64, len(names))
	for range 2 {
		unknown := map[Name]bool{}
		for _, name := range names {
			if id, ok := c.ids[name]; ok {
				ids[name] = id
			} else {
				unknown[name] = true
			}
		}
		if len(unknown) == 0 {
			return ids, nil
		}
		missing := make([]Name, 0, len(unknown))
		for name := range unknown {
			missing = append(missing, name)
		}
		found, err := find(missing)
		if err != nil {
			return nil, err
		}
		maps.Copy(c.ids, found)
		maps.Copy(ids, found)
	}
	return ids, nil
}
