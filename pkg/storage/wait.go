package storage

import "time"

// QuietWait is how long a claim waits for its provisioner, and how long a call of the
// provisioner takes, until an event says so. Most volumes are created faster.
const QuietWait = 2 * time.Second
