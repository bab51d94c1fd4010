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

// clock makes a project server's timestamps wrong, by another amount after each restart of the server, as if the machine's clock
// had been set while it was down.
type clock struct {
	mu      sync.Mutex
	offsets map[string]int64 // in ms, by Feed-Instance
}

// offset returns by how much the clock is wrong for an instance of the server, up to an hour.
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

// since converts a reader's query to the right time.
func since(query url.Values, offset int64) url.Values {
	if asked, err := strconv.ParseInt(query.Get("since"), 10, 64); err == nil && asked > 0 {
		query.Set("since", strconv.FormatInt(max(0, asked-offset), 10))
	}
	return query
}

// nothing is a query for no events.
var nothing = url.Values{"since": {strconv.Itoa(math.MaxInt64)}}

// shift changes the timestamps in a feed, and adds the right ones.
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
