package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"switchyard/internal/domain"
	"switchyard/internal/jsonscan"
)

// FeedAnswer is a project server's answer to a request for its feed.
type FeedAnswer struct {
	Instance string // Feed-Instance, "" for a server that sends none
	Sequence int64  // Feed-Sequence, -1 for a server that sends none
	Pipeline string // Pipeline-Version, "" for a server that sends none
	// Received is the number of records in the answer. Records are the valid ones, in the order in which they came,
	// which may be any; Refused are the first of the others.
	Received int
	Records  []domain.Record
	Refused  []RefusedRecord
	// Left is how many of those received were left for the next read, because the answer has too many for one. All of
	// them are later than Records.
	Left int
}

type RefusedRecord struct {
	JSON json.RawMessage // its beginning
	Why  error
}

// maxVersion is the longest Pipeline-Version that is accepted, in bytes.
const maxVersion = 200

const (
	// maxAtOnce is how many new records one read takes; later ones are left for the next read.
	maxAtOnce = 5000
	// maxRecord is the largest record that is accepted, in bytes.
	maxRecord = 64 << 10
	// maxRefused is how many refused records of one answer are returned, and maxRefusedJSON how many bytes of each.
	maxRefused, maxRefusedJSON = 100, 1 << 10
)

var (
	errNoFeed       = domain.Errorf(domain.BadGateway, "is not an event feed: the answer is not a JSON array")
	errManyRecords  = domain.Errorf(domain.BadGateway, "answer is too large: over %d records", maxRecords)
	errLargeRecord  = errors.New("record is over 64 KiB")
	errNestedRecord = errors.New("record is nested more than 100 levels deep")
)

// decodeFeed decodes the answer to a request for records after since. It is tolerant: an invalid record does not affect
// the others. Time is linear in the answer's length except for sorting, and memory a small multiple of the records'
// size.
func decodeFeed(header http.Header, body []byte, since int64) (FeedAnswer, error) {
	elements, err := splitFeed(body)
	if err != nil {
		return FeedAnswer{}, err
	}
	feed := FeedAnswer{Instance: header.Get("Feed-Instance"), Sequence: -1, Received: len(elements)}
	if n, err := strconv.ParseInt(header.Get("Feed-Sequence"), 10, 64); err == nil && n >= 0 {
		feed.Sequence = n
	}
	if version := header.Get("Pipeline-Version"); len(version) <= maxVersion {
		feed.Pipeline = version
	}
	elements = oldest(elements, since)
	feed.Left = feed.Received - len(elements)
	for _, element := range elements {
		record, err := parseRecord(element)
		if err == nil {
			feed.Records = append(feed.Records, record)
		} else if len(feed.Refused) < maxRefused {
			beginning := bytes.Clone(element[:min(len(element), maxRefusedJSON)])
			feed.Refused = append(feed.Refused, RefusedRecord{JSON: beginning, Why: err})
		}
	}
	return feed, nil
}

// splitFeed returns the elements of a JSON array, as parts of body.
func splitFeed(body []byte) ([][]byte, error) {
	if string(bytes.TrimSpace(body)) == "[]" { // the usual answer (BenchmarkFeedRead)
		return nil, nil
	}
	r := jsonscan.NewReader(body)
	if r.Kind() != '[' {
		return nil, errNoFeed
	}
	var elements [][]byte
	for range r.Parts() {
		if len(elements) == maxRecords {
			return nil, errManyRecords
		}
		elements = append(elements, r.Value())
	}
	if err := r.End(); err != nil {
		return nil, domain.WrapError(domain.BadGateway, err, "is not an event feed: the answer is not valid JSON")
	}
	return elements, nil
}

// oldest returns all elements, or, if more than maxAtOnce of them are new, only the oldest of the new ones and all
// others. It never separates elements with the same timestamp, so that the next read can continue after it.
func oldest(elements [][]byte, since int64) [][]byte {
	if len(elements) <= maxAtOnce {
		return elements
	}
	type stamped struct {
		at    int64
		index int
	}
	order := make([]stamped, len(elements))
	known := 0
	for i, element := range elements {
		order[i] = stamped{stampOf(element), i}
		if order[i].at <= since+1 { // a server without Feed-Instance is asked for a millisecond more
			known++
		}
	}
	slices.SortFunc(order, func(a, b stamped) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.index, b.index))
	})
	n := min(known+maxAtOnce, len(order))
	for n < len(order) && order[n].at == order[n-1].at {
		n++
	}
	taken := make([][]byte, n)
	for i, o := range order[:n] {
		taken[i] = elements[o.index]
	}
	return taken
}

// stampOf returns the timestamp_ms of a valid record, -1 for any other.
func stampOf(element []byte) int64 {
	if len(element) > maxRecord || jsonscan.Check(element) != nil {
		return -1
	}
	var head struct {
		TimestampMS *int64 `json:"timestamp_ms"`
	}
	if json.Unmarshal(element, &head) != nil || head.TimestampMS == nil {
		return -1
	}
	return *head.TimestampMS
}

func parseRecord(element []byte) (domain.Record, error) {
	if len(element) > maxRecord {
		return domain.Record{}, errLargeRecord
	}
	if errors.Is(jsonscan.Check(element), jsonscan.ErrDeep) {
		return domain.Record{}, errNestedRecord
	}
	record, err := domain.ParseRecord(element)
	if err == nil && len(record.JSON) > maxRecord { // invalid UTF-8 grows when it is encoded
		return domain.Record{}, errLargeRecord
	}
	return record, err
}
