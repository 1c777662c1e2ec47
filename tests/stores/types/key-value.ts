// As redis.ts, for storages that wrap others.
import Keyv from "keyv";
import { createStorage, prefixStorage } from "unstorage";
import { keyvStore } from "tripcurve/stores/keyv";
import { unstorageStore } from "tripcurve/stores/unstorage";

const storage = createStorage();
unstorageStore(storage);
unstorageStore(prefixStorage(storage, "mine"), { prefix: "circuits:" });
unstorageStore(createStorage<string>());
keyvStore(new Keyv());
keyvStore(new Keyv<string>(), { prefix: "circuits:" });

// @ts-expect-error
unstorageStore(new Keyv());
// @ts-expect-error
keyvStore(storage);
