package controller

import "sync"

// KeyLocks is a mutex per key, shared by several loops. Locks exist only while used.
// It is safe for concurrent use; its zero value is ready.
type KeyLocks struct {
	mu    sync.Mutex
	locks map[string]*keyLock
}

type keyLock struct {
	sync.Mutex
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
		lock = &keyLock{}
		l.locks[key] = lock
	}
	lock.users++
	l.mu.Unlock()
	lock.Lock()
	return func() {
		lock.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if lock.users--; lock.users == 0 {
			delete(l.locks, key)
		}
	}
}
