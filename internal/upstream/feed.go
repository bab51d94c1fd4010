package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"switchyard/internal/domain"
)

var errNoFeed = domain.Errorf(domain.BadGateway, "is no event feed: the answer is not a JSON array")

// maxRefused is how many refused records of one answer are kept for the log.
const maxRefused = 100

// Feed asks a project server for its records after since. With a wait it asks the server to hold the answer for that long
// while there is none; one that knows no wait answers at once. Errors are those of every call: BadGateway with a message
// for people, or ctx's own.
func (c *Client) Feed(ctx context.Context, p domain.Project, since int64, wait time.Duration) (feed domain.FeedAnswer, err error) {
	query := url.Values{"since": {strconv.FormatInt(since, 10)}}
	if wait > 0 {
		query.Set("wait", wait.String())
	}
	err = c.get(ctx, p, call{kind: "feed", path: "/api/events", query: query, wait: wait}, func(a answer) error {
		feed, err = decodeFeed(a.header, a.body)
		return err
	})
	return feed, err
}

// decodeFeed reads a feed tolerantly: a record that cannot be kept costs itself only.
func decodeFeed(header http.Header, body []byte) (domain.FeedAnswer, error) {
	feed := domain.FeedAnswer{Instance: header.Get("Feed-Instance"), Sequence: -1}
	if n, err := strconv.ParseInt(header.Get("Feed-Sequence"), 10, 64); err == nil && n >= 0 {
		feed.Sequence = n
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return domain.FeedAnswer{}, errNoFeed
	}
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return domain.FeedAnswer{}, domain.WrapError(domain.BadGateway, err, "is no event feed: the answer is not valid JSON")
		}
		feed.Received++
		record, err := domain.ParseRecord(raw)
		if err == nil {
			feed.Records = append(feed.Records, record)
		} else if len(feed.Refused) < maxRefused {
			feed.Refused = append(feed.Refused, domain.RefusedRecord{JSON: raw, Why: err})
		}
	}
	_, err := decoder.Token() // the closing bracket
	if _, end := decoder.Token(); err != nil || end != io.EOF {
		return domain.FeedAnswer{}, errNoFeed
	}
	return feed, nil
}
