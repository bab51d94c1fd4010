package store

import "context"

// FillDisk makes the database as if the disk had no space left, or had it again.
func (db *DB) FillDisk(full bool) error {
	statement := "PRAGMA max_page_count = 4294967294"
	if full {
		statement = "PRAGMA max_page_count = 1" // it becomes the present size
	}
	_, err := db.write.ExecContext(context.Background(), statement)
	return err
}
