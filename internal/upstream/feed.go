package upstream

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"switchyard/internal/domain"
)

// FeedAnswer is a project server's answer to a request for its feed.
type FeedAnswer struct {
	Instance string // Feed-Instance, "" for a server that sends none
	Sequence int64  // Feed-Sequence, -1 for a server that sends none
	Pipeline string // Pipeline-Version, "" for a server that sends none
	// Received is the number of records in the answer. Records are the valid ones, in the order in which they
	// came, which may be any; Refused are the first of the others.
	Received int
	Records  []domain.Record
	Refused  []RefusedRecord
	// Left is how many of those received were left for the next read, because the answer has too many for one. All of them
	// are later than Records.
	Left int
}

// RefusedRecord is a record that cannot be stored.
type RefusedRecord struct {
	JSON json.RawMessage // its beginning
	Why  error
}

// FeedRequest says which records a project server is asked for.
type FeedRequest struct {
	Since int64 // records with a greater timestamp_ms
	// Wait asks the server to hold the answer for that long while there is no such record; a server that does not support
	// it answers at once. Pipeline, unless "", asks it to answer also when its Pipeline-Version is a different one.
	Wait     time.Duration
	Pipeline string
}

// Feed requests a project server's records. It returns BadGateway with a message for people, or ctx's error.
func (c *Client) Feed(ctx context.Context, p domain.Project, r FeedRequest) (feed FeedAnswer, err error) {
	query := "since=" + strconv.FormatInt(r.Since, 10)
	if r.Wait > 0 {
		query += "&wait=" + r.Wait.String()
		if r.Pipeline != "" {
			query += "&pipeline=" + url.QueryEscape(r.Pipeline)
		}
	}
	err = c.do(ctx, p, call{path: feedPath, query: query, wait: r.Wait}, func(a answer) (err error) {
		feed, err = decodeFeed(a.header, a.body, r.Since)
		return err
	})
	if ctx.Err() == nil || err == nil {
		c.observe(p.Name, "feed", err)
	}
	return feed, err
}

const feedPath = "/api/events"

// maxVersion is the longest Pipeline-Version that is accepted, in bytes.
const maxVersion = 200

// servesFeed reports whether the project server has a feed, without requesting any of its records.
func (c *Client) servesFeed(ctx context.Context, p domain.Project) bool {
	query := "since=" + strconv.FormatInt(math.MaxInt64, 10)
	return c.do(ctx, p, call{path: feedPath, query: query}, func(a answer) error {
		_, err := splitFeed(a.body)
		return err
	}) == nil
}

// feedHeader reads the headers of a feed's answer.
func feedHeader(header http.Header) FeedAnswer {
	feed := FeedAnswer{Instance: header.Get("Feed-Instance"), Sequence: -1}
	if n, err := strconv.ParseInt(header.Get("Feed-Sequence"), 10, 64); err == nil && n >= 0 {
		feed.Sequence = n
	}
	if version := header.Get("Pipeline-Version"); len(version) <= maxVersion {
		feed.Pipeline = version
	}
	return feed
}
