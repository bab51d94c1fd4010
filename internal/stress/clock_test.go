//go:build stress

package stress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// clock makes a project server's stamps those of a machine whose clock is wrong, by another amount in each of the server's
// lives: it was set forward or back while the server was down.
type clock struct {
	mu      sync.Mutex
	offsets map[string]int64 // in ms, by Feed-Instance
}

// offset is by how much the clock is wrong in a life of the server, up to an hour.
func (c *clock) offset(instance string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.offsets[instance]; !known {
		if c.offsets == nil {
			c.offsets = map[string]int64{}
		}
		c.offsets[instance] = rand.Int64N(2*time.Hour.Milliseconds()) - time.Hour.Milliseconds()
	}
	return c.offsets[instance]
}

// since translates what a reader asks for to the right time.
func since(query url.Values, offset int64) url.Values {
	if asked, err := strconv.ParseInt(query.Get("since"), 10, 64); err == nil && asked > 0 {
		query.Set("since", strconv.FormatInt(max(0, asked-offset), 10))
	}
	return query
}

// nothing is a query for no events.
var nothing = url.Values{"since": {strconv.Itoa(math.MaxInt64)}}

// shift changes the stamps of a feed, and keeps the right ones beside them.
func shift(feed []byte, offset int64) ([]byte, error) {
	var records []map[string]any
	decoder := json.NewDecoder(bytes.NewReader(feed))
	decoder.UseNumber()
	if err := decoder.Decode(&records); err != nil {
		return nil, err
	}
	for _, r := range records {
		stamp, err := strconv.ParseInt(fmt.Sprint(r["timestamp_ms"]), 10, 64)
		if err != nil {
			return nil, err
		}
		r["timestamp_ms"], r["right_ms"] = stamp+offset, stamp
	}
	return json.Marshal(records)
}
