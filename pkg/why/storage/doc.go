// Package storage explains the deletion of volumes, claims, pods as users of claims, attachments, snapshots and the drivers behind them.
package storage
