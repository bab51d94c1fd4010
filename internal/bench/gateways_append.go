package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
	"switchyard/internal/store/postgres"
)

const (
	// appendBatch is the number of events that a gateway appends at once, appendTime how long gateways append.
	appendBatch = 10
	appendTime  = 5 * time.Second
	// weighedEvents is a number of events large enough to measure what one takes on disk.
	weighedEvents = 20_000
)

// measureAppends measures how fast two and three gateways append to one stream, and the size of an event on disk.
func measureAppends(server *pgtest.Server) (table []row, err error) {
	for _, gateways := range []int{2, 3} {
		r, err := measureAppendsOf(server, gateways)
		if err != nil {
			return nil, err
		}
		table = append(table, r)
	}
	bytes, err := bytesOfEvent(server)
	if err != nil {
		return nil, err
	}
	return append(table, row{
		fmt.Sprintf("bytes of an event in PostgreSQL, of %s", thousands(weighedEvents)), fmt.Sprintf("%.0f", bytes), "",
		false,
	}), nil
}

func measureAppendsOf(server *pgtest.Server, gateways int) (r row, err error) {
	ctx := context.Background()
	url, err := server.Database(ctx)
	if err != nil {
		return r, err
	}
	var mu sync.Mutex
	var times []float64
	failures := make(chan error, gateways)
	began := time.Now()
	for i := range gateways {
		go func() {
			failures <- func() error {
				db, err := postgres.Open(ctx, url)
				if err != nil {
					return err
				}
				defer db.Close()
				for n := 0; time.Since(began) < appendTime; n++ {
					read, err := readOf(fmt.Sprintf("project-%d-%d", i, n%50), n*appendBatch, appendBatch)
					if err != nil {
						return err
					}
					start := time.Now()
					if _, err := db.AppendEvents(ctx, []domain.FeedRead{read}); err != nil {
						return err
					}
					mu.Lock()
					times = append(times, milliseconds(time.Since(start)))
					mu.Unlock()
				}
				return nil
			}()
		}()
	}
	for range gateways {
		if err := <-failures; err != nil {
			return r, err
		}
	}
	took := time.Since(began)
	db, err := postgres.Open(ctx, url)
	if err != nil {
		return r, err
	}
	defer db.Close()
	last, err := db.LastEventID(ctx)
	if err != nil {
		return r, err
	}
	if want := int64(len(times) * appendBatch); last != want {
		return r, fmt.Errorf("the last id is %d, want %d", last, want)
	}
	slices.Sort(times)
	rate := float64(last) / took.Seconds()
	return row{
		fmt.Sprintf("%d gateways append to one stream, %d events at once", gateways, appendBatch),
		fmt.Sprintf("%s events/s, p50 %.1f ms, p99 %.1f ms", thousands(int(rate)/100*100), times[len(times)/2],
			times[len(times)*99/100]),
		"≥ 1,000 events/s", rate >= 1000,
	}, nil
}

// readOf returns a read of count events of a project, starting with number first.
func readOf(project string, first, count int) (domain.FeedRead, error) {
	read := domain.FeedRead{ReceivedAt: time.Now()}
	read.Cursor = domain.FeedCursor{Project: project, URL: "http://127.0.0.1:1", Since: int64(first + count)}
	for n := first; n < first+count; n++ {
		record, err := domain.ParseRecord(eventRecord(n, time.UnixMilli(int64(n))))
		if err != nil {
			return read, err
		}
		read.Records = append(read.Records, record)
	}
	return read, nil
}

// bytesOfEvent returns the size of a typical event in the database, with all its rows and indexes.
func bytesOfEvent(server *pgtest.Server) (float64, error) {
	ctx := context.Background()
	url, err := server.Database(ctx)
	if err != nil {
		return 0, err
	}
	db, err := postgres.Open(ctx, url)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer connection.Close(ctx)
	size := func() (bytes int64, err error) {
		return bytes, connection.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&bytes)
	}
	before, err := size()
	if err != nil {
		return 0, err
	}
	if err := fillStore(ctx, db, weighedEvents); err != nil {
		return 0, err
	}
	after, err := size()
	return float64(after-before) / weighedEvents, err
}
