import { orders } from "../upstream.js";

export const dynamic = "force-dynamic";
export const GET = () => orders();
