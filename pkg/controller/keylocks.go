package controller

import "sync"

// KeyLocks is a lock per key, shared by several loops. Locks exist only while used.
// It is safe for concurrent use; its zero value is ready. A lock is a channel, not a mutex:
// testing/synctest does not count a goroutine that waits for a mutex as waiting.
type KeyLocks struct {
	mu    sync.Mutex
	locks map[string]*keyLock
}

type keyLock struct {
	held  chan struct{}
	users int // workers that hold the lock or wait for it
}

// Lock waits for the lock of the key and returns the function that unlocks it.
func (l *KeyLocks) Lock(key string) (unlock func()) {
	l.mu.Lock()
	if l.locks == nil {
		l.locks = map[string]*keyLock{}
	}
	lock := l.locks[key]
	if lock == nil {
		lock = &keyLock{held: make(chan struct{}, 1)}
		l.locks[key] = lock
	}
	lock.users++
	l.mu.Unlock()
	lock.held <- struct{}{}
	return func() {
		<-lock.held
		l.mu.Lock()
		defer l.mu.Unlock()
		if lock.users--; lock.users == 0 {
			delete(l.locks, key)
		}
	}
}
